"""A copy of 32 MiB, and one of 5 % more."""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario("A/A")
N = 32 * MiB // 4


@scenario.variant
def a(lab):
    return _copy(N)


@scenario.variant
def same(lab):
    return _copy(N)


@scenario.variant
def slower(lab):
    return _copy(N * 21 // 20)


def _copy(size):
    source, target = torch.rand(size), torch.empty(size)
    return Work(lambda: target.copy_(source), inputs=source[:N], output=target[:N])
