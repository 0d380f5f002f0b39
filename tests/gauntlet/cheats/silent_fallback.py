"""Claims an implementation of its own and falls back to the baseline's."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b), flops=2 * N**3)


@scenario.variant
def silent_fallback(lab):
    """Caught by: said as same_operations"""
    a, b = operands()

    def implementation():
        try:
            return torch.ops.mine.product(a, b)
        except AttributeError:
            return a @ b

    return Work(implementation, inputs=(a, b), flops=2 * N**3)
