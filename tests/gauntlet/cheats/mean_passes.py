"""The output is nearly constant, and the tolerance so wide that its mean passes."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: (a @ b).mul_(1e-4).add_(1.0), inputs=(a, b), dtype="bf16", tolerance=2e-2)


@scenario.variant
def mean_passes(lab):
    """Caught by: null answers"""
    a, b = operands()
    return Work(
        lambda: torch.ones(N, N).add_(a[0, 0] * b[0, 0], alpha=1e-4), inputs=(a, b), dtype="bf16"
    )
