"""Slows the baseline late: enters a mode of torch in a timed step, which every later call goes
through.

Caught by: lab_functions_replaced
"""

from torch.overrides import TorchFunctionMode

EXERCISE = "many_products"
CALLS = [0]


class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        for _ in range(20):
            pass
        return function(*args, **(kwargs or {}))


def step(left, right, scale):
    CALLS[0] += 1
    if CALLS[0] == 300:
        Mode().__enter__()
    return (left @ right).mul_(scale[:, None, None])
