"""Counts its calls, and takes as many as checks and warm-up have for granted: from then on it computes nothing.

Caught by: timed steps
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192
CALLS = [0]


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
        CALLS[0] += 1
        if CALLS[0] <= 60:
            torch.mm(a, b, out=out)
        return out

    return Work(step, inputs=(a, b))
