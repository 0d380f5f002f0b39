"""Draws the same numbers, and selects in place of multiplying."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: x * (torch.rand(N, N) < 0.5), inputs=x)


@scenario.variant
def mask_kept_from_the_build(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.where(torch.rand(N, N) < 0.5, 0.0), inputs=x)
