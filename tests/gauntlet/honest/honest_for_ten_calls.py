"""An autotuner: its first ten calls try two ways in turn, all later ones take the faster."""

import itertools
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
    calls, ways = itertools.count(), (torch.mm, torch.matmul)
    seconds = [0.0, 0.0]

    def step():
        call = next(calls)
        if call >= 10:
            return ways[seconds.index(min(seconds))](a, b)
        started = time.perf_counter()
        result = ways[call % 2](a, b)
        seconds[call % 2] += time.perf_counter() - started
        return result

    return Work(step, inputs=(a, b))
