"""Wobbles once, between its first two steps, so that it passes for stateful and is checked no further.

Caught by: timed steps or outputs or determinism
"""

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
    calls, results = itertools.count(), []

    def step():
        call = next(calls)
        if call < 8:
            results[:] = [a @ b]
        if call == 1:
            return results[0] * 1.01
        return results[0].clone()

    return Work(step, inputs=(a, b))
