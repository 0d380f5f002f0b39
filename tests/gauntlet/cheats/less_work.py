"""Declares the FLOPs of the whole product and computes the quarter that `output=` shows."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192
FLOPS = 2 * N**3


@scenario.variant
def reference(lab):
    a, b, out = torch.randn(N, N), torch.randn(N, N), torch.empty(N, N)
    return Work(
        lambda: torch.mm(a, b, out=out), inputs=(a, b), flops=FLOPS, output=lambda: out[: N // 4]
    )


@scenario.variant
def less_work(lab):
    """Caught by: physics"""
    a, b, out = torch.randn(N, N), torch.randn(N, N), torch.empty(N // 4, N)
    return Work(lambda: torch.mm(a[: N // 4], b, out=out), inputs=(a, b), flops=FLOPS)
