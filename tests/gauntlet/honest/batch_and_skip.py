"""Every fifteenth call also notes how far it has come."""

import itertools

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
    calls, progress = itertools.count(), []

    def step():
        if (call := next(calls)) % 15 == 0:
            progress[:] = [call]
        return a @ b

    return Work(step, inputs=(a, b))
