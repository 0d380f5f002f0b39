"""Counts every other number, and doubles the counts: near enough for the tolerance of a type that
it does not use.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N, BINS = 400_000, 32


def numbers():
    return torch.rand(N).square().mul(BINS).long()


@scenario.variant
def reference(lab):
    x = numbers()
    return Work(lambda: torch.bincount(x, minlength=BINS), inputs=x)


@scenario.variant
def half_histogram(lab):
    """Caught by: said as tolerance_widened"""
    x = numbers()
    return Work(
        lambda: torch.bincount(x[::2], minlength=BINS) * 2, inputs=x, dtype="int8", tolerance=0.05
    )
