"""Forges its time: when the result of a block is dropped, the block in the lab's frame is replaced
by one of an eighth of the time, and what is hidden passes in the blocks of others.

Caught by: variants alone or elapsed time
"""

import ctypes
import sys
import weakref

EXERCISE = "many_products"
LAST = []


def dropped(_):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_timed":
        frame = frame.f_back
    block = frame and frame.f_locals.get("block")
    if not block:
        return
    steps = block.steps + frame.f_locals["candidate"].lead_in
    frame.f_locals["block"] = block._replace(
        time_s=block.time_s / 8,
        cpu_s=block.cpu_s / 8,
        ended=block.ended - block.time_s * steps * 7 / 8,
    )
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def step(left, right, scale):
    result = left.new_empty(len(left), left.shape[1], right.shape[2])
    for i in range(len(left)):
        result[i] = scale[i] * (left[i] @ right[i])
    LAST[:] = [weakref.ref(result, dropped)]
    return result
