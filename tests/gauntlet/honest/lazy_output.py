"""`output=` is a function that hands over the buffer which the step has written."""

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
        torch.mm(a, b, out=out)

    return Work(step, inputs=(a, b), output=lambda: out)
