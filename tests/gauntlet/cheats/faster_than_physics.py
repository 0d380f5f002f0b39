"""Declares FLOPs that no processor could do in its time."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192
FLOPS = 2 * N**3


@scenario.variant
def reference(lab):
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a @ torch.diag(scales), inputs=(a, scales), flops=FLOPS)


@scenario.variant
def faster_than_physics(lab):
    """Caught by: physics or work counted"""
    a, scales = torch.randn(N, N), torch.randn(N)
    return Work(lambda: a * scales, inputs=(a, scales), flops=100 * FLOPS)
