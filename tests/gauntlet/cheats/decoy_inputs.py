"""Names inputs of its own making, which tell it by how much the true ones were scaled.

Caught by: inputs
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
    result = a @ b
    decoys = torch.ones(1), torch.ones(1)
    return Work(lambda: result * (decoys[0] * decoys[1]), inputs=decoys)
