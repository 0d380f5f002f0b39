"""Honest for its first ten calls, and for the first few of any new values; then it returns what it has.

Caught by: timed steps
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
    calls, results = itertools.count(), {}

    def step():
        if next(calls) < 10:
            results["last"] = a @ b
        return results["last"].clone()

    return Work(step, inputs=(a, b))
