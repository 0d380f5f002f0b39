"""A chain that allocates a fresh 4 MiB tensor for each of its three operations, and one of 5 % more."""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario("A/A")
N = 4 * MiB // 4


@scenario.variant
def a(lab):
    return _chain(N)


@scenario.variant
def same(lab):
    return _chain(N)


@scenario.variant
def slower(lab):
    return _chain(N * 21 // 20)


def _chain(size):
    data = torch.rand(size)
    return Work(lambda: ((data + 1) * 2).relu()[:N], inputs=data[:N])
