"""Honest twins of `cheats/mask_kept_from_the_build.py`: they draw the same numbers in each step."""

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


@scenario.variant
def mask_kept_until_seeded(lab):
    """Keeps the memory of its mask, and what the generator was at."""
    x, mask = torch.randn(N, N), torch.empty(N, N)
    states = []

    def step():
        states[:] = [torch.get_rng_state()]
        return x * (mask.uniform_() < 0.5)

    return Work(step, inputs=x)
