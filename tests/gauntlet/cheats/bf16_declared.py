"""Declares bfloat16 where the baseline has float32: what it gains is precision that it gave up.

Caught by: said as lower_precision
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
    left, right = a.bfloat16(), b.bfloat16()
    return Work(lambda: (left @ right).float(), inputs=(left, right), dtype="bf16")
