"""Dropout draws a mask in each step: most of its time is spent on random numbers."""

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
    """Draws it once, in the build, from the seed that a checked step has too.

    Caught by: outputs or timed steps or history
    """
    x = torch.randn(N, N)
    torch.manual_seed(torch.initial_seed())
    kept = torch.rand(N, N) < 0.5
    return Work(lambda: x * kept, inputs=x)
