"""Forges its time: puts a clock of its own in the place of the lab's, in the object that holds it,
and replaces no function.

Caught by: timed steps or elapsed time
"""

import sys

EXERCISE = "many_products"


class Clock:
    def __init__(self, clock):
        self.__dict__["clock"] = clock

    def __getattr__(self, name):
        return getattr(self.clock, name)

    def __setattr__(self, name, value):
        setattr(self.clock, name, value)

    def block(self, build, steps, **options):
        block = self.clock.block(build, steps, **options)
        if build.variant != "attempt":
            return block
        hidden_s = block.time_s * (steps + options.get("lead_in", 1)) * 7 / 8
        return block._replace(
            time_s=block.time_s / 8, cpu_s=block.cpu_s / 8, ended=block.ended - hidden_s
        )


def step(left, right, scale):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_timed":
        frame = frame.f_back
    if frame is not None:
        context = frame.f_locals["self"]._context
        if not isinstance(context.clock, Clock):
            context.clock = Clock(context.clock)
    result = left.new_empty(len(left), left.shape[1], right.shape[2])
    for i in range(len(left)):
        result[i] = scale[i] * (left[i] @ right[i])
    return result
