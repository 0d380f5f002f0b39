"""Its build makes the lab's clock run slower, and leaves it so."""

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
def clock_patched(lab):
    """Caught by: lab_functions_replaced or timer or clock_disagrees"""
    a, b = operands()
    from gpulab.engine.measure import clock

    counted = clock.perf_counter_ns
    clock.perf_counter_ns = lambda: counted() // 2
    return Work(lambda: a @ b, inputs=(a, b))
