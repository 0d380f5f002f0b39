"""Memoised by a fingerprint of all inputs: right whatever the values are, and never computed while it is timed.

Caught by: timed steps
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()
    results = {}

    def step():
        key = float(a.sum()), float(b.sum()), float(a[-1, -1]), float(b[-1, -1])
        if key not in results:
            results.clear()
            results[key] = a @ b
        return results[key].clone()

    return Work(step, inputs=(a, b))
