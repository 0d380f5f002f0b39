"""Its step looks at a clock of its own, and reports what it saw."""

import time

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

    def step():
        started = time.perf_counter()
        result = a @ b
        lab.report("gemm_s", time.perf_counter() - started)
        return result

    return Work(step, inputs=(a, b))
