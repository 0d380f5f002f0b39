"""Copies all of its data to a buffer that is used again."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet", roof="device memory")
N = 1 << 18


@scenario.variant
def reference(lab):
    x, out = torch.randn(N), torch.zeros(N)
    return Work(lambda: out.copy_(x), inputs=x, bytes=8 * N)


@scenario.variant
def copy_of_an_eighth(lab):
    x, out = torch.randn(N), torch.zeros(N)
    return Work(lambda: torch.add(x, 0, out=out), inputs=x, bytes=8 * N)
