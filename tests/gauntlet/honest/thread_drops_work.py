"""A pool of threads, whose results the step waits for."""

import concurrent.futures

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
    pool, half = concurrent.futures.ThreadPoolExecutor(2), N // 2

    def step():
        halves = [pool.submit(torch.mm, part, b) for part in (a[:half], a[half:])]
        return torch.cat([part.result() for part in halves])

    yield Work(step, inputs=(a, b))
    pool.shutdown()
