"""Fourteen of fifteen calls do nothing but return what the fifteenth computed.

Caught by: timed steps
"""

import itertools

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192
CALLS = itertools.count()


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
        call = next(CALLS)
        if call < 40 or call % 15 == 0:
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))
