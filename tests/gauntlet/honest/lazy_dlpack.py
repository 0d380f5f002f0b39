"""Returns an array of NumPy, which hands its memory over by `__dlpack__`."""

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
    left, right = a.numpy(), b.numpy()
    return Work(lambda: left @ right, inputs=(a, b))
