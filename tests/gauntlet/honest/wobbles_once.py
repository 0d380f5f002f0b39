"""Sums in an order that changes from step to step: the last bits differ, no more than rounding does."""

import itertools

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()
    calls = itertools.count()

    def step():
        half = N // 2
        parts = [(slice(None, half)), (slice(half, None))]
        first, second = parts if next(calls) % 2 else reversed(parts)
        return torch.mm(a[:, first], b[first]).addmm_(a[:, second], b[second])

    return Work(step, inputs=(a, b))
