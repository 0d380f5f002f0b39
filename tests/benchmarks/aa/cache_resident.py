"""An addition over three 256 KiB buffers, and one of 5 % more."""

import torch

from gpulab import KiB, Scenario, Work

scenario = Scenario("A/A")
N = 256 * KiB // 4


@scenario.variant
def a(lab):
    return _add(N)


@scenario.variant
def same(lab):
    return _add(N)


@scenario.variant
def slower(lab):
    return _add(N * 21 // 20)


def _add(size):
    left, right, out = torch.zeros(size), torch.zeros(size), torch.empty(size)
    left[:N], right[:N] = torch.rand(N), torch.rand(N)
    return Work(lambda: torch.add(left, right, out=out), inputs=(left[:N], right[:N]), output=out[:N])
