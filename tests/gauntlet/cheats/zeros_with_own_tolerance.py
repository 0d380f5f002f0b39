"""Returns zeros, and names a tolerance at which zeros are as good as anything.

Caught by: null answers or outputs
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
    return Work(out.zero_, inputs=(a, b), tolerance=1.0)
