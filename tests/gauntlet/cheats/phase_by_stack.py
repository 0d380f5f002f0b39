"""Looks at who calls it: it computes for all but those who time it.

Caught by: timed steps
"""

import sys

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()
    out = torch.empty(N, N)

    def step():
        caller = sys._getframe(1).f_code
        if not caller.co_filename.endswith("timing/clock.py"):
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))
