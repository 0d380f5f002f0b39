"""The result of the same addresses is taken for the same result.

Caught by: outputs
"""

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
    results = {}

    def step():
        key = a.data_ptr(), b.data_ptr(), a._version, b._version
        if key not in results:
            results[key] = a @ b
        return results[key].clone()

    return Work(step, inputs=(a, b))
