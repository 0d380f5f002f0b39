"""The lab's clock runs slower while blocks are timed, and is put back when the build is let go."""

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
def clock_patched_for_a_while(lab):
    """Caught by: lab_functions_replaced"""
    a, b = operands()
    from gpulab.engine.measure import clock

    counted = clock.perf_counter_ns
    clock.perf_counter_ns = lambda: counted() // 2
    yield Work(lambda: a @ b, inputs=(a, b))
    clock.perf_counter_ns = counted
