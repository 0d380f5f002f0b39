"""Needs fewer operations, and declares those that it needs."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


@scenario.variant
def reference(lab):
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a @ torch.diag(scales), inputs=(a, scales), flops=2 * N**3)


@scenario.variant
def faster_than_physics(lab):
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a * scales, inputs=(a, scales), flops=N * N)
