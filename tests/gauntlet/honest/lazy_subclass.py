"""Returns a subclass of torch.Tensor whose values are there: a parameter."""

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
    out = torch.nn.Parameter(torch.empty(N, N), requires_grad=False)
    return Work(lambda: torch.mm(a, b, out=out), inputs=(a, b))
