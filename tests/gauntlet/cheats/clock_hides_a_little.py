"""Hides 7 % of the time of its own steps, and puts the lab's clock back when the build is let
go.
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
def clock_hides_a_little(lab):
    """Caught by: lab_functions_replaced or timer or clock_disagrees"""
    a, b = operands()
    from gpulab.engine.measure import clock

    counted, hidden_ns = clock.perf_counter_ns, [0]

    def step():
        started = counted()
        result = a @ b
        hidden_ns[0] += (counted() - started) * 7 // 100
        return result

    clock.perf_counter_ns = lambda: counted() - hidden_ns[0]
    yield Work(step, inputs=(a, b))
    clock.perf_counter_ns = counted
