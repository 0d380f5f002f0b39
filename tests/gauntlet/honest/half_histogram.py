"""Counts both halves, and adds up their counts."""

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
    x = numbers()
    halves = x[::2], x[1::2]
    return Work(lambda: sum(torch.bincount(half, minlength=BINS) for half in halves), inputs=x)
