"""A product of whole numbers, which is exact in any order."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 96


def operands():
    return [torch.randint(-128, 128, (N, N), dtype=torch.int8) for _ in range(2)]


@scenario.variant
def in_int32(lab):
    a, b = operands()
    return Work(lambda: a.int() @ b.int(), inputs=(a, b), dtype="int8")


@scenario.variant
def int_mm(lab):
    a, b = operands()
    return Work(lambda: torch._int_mm(a, b), inputs=(a, b), dtype="int8")


@scenario.variant
def in_float(lab):
    """Sums below 2**24 are exact."""
    a, b = operands()
    return Work(lambda: (a.float() @ b.float()).int(), inputs=(a, b))
