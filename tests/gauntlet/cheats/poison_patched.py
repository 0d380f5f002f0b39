"""Takes the poison away that the lab puts into outputs between two steps, and returns what it once
computed.
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
def poison_patched(lab):
    """Caught by: lab_functions_replaced"""
    a, b = operands()
    from gpulab.engine.build import tensors

    tensors.poison = lambda tensors: None
    out = a @ b
    return Work(lambda: out, inputs=(a, b))
