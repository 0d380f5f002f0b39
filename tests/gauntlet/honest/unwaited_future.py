"""Waits for its future before it returns."""

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
    pool = concurrent.futures.ThreadPoolExecutor(1)
    return Work(lambda: pool.submit(torch.mm, a, b).result(), inputs=(a, b))
