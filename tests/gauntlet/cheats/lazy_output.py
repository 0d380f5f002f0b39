"""The step notes that there is something to do; `output=` does it once somebody asks.

Caught by: context and output
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
    return Work(lambda: None, inputs=(a, b), output=lambda: a @ b)
