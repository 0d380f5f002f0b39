"""A recorded list of operations on fixed buffers, replayed as a graph is: each replay reads its inputs again."""

import functools

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
    recorded = [functools.partial(torch.mm, a, b, out=out), functools.partial(out.mul_, 1.0)]

    def step():
        for operation in recorded:
            operation()
        return out

    return Work(step, inputs=(a, b))
