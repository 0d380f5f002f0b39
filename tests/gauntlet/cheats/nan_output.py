"""Returns NaN: no comparison with it is true, and one that asks for "greater than allowed" passes.

Caught by: outputs
"""

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
    return Work(lambda: out.fill_(float("nan")), inputs=(a, b))
