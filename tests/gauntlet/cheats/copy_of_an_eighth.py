"""Copies an eighth of its data, which is all that `output=` shows."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet", roof="device memory")
N = 1 << 18


@scenario.variant
def reference(lab):
    x, out = torch.randn(N), torch.zeros(N)
    return Work(lambda: out.copy_(x), inputs=x, bytes=8 * N, output=lambda: out[: N // 8])


@scenario.variant
def copy_of_an_eighth(lab):
    """Caught by: said as declares_more_bytes"""
    x, out = torch.randn(N), torch.zeros(N)
    return Work(
        lambda: out[: N // 8].copy_(x[: N // 8]),
        inputs=x,
        bytes=8 * N,
        output=lambda: out[: N // 8],
    )
