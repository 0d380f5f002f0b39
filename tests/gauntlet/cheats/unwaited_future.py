"""Returns a future of its output, and lets somebody else wait for it.

Caught by: being waited for
"""

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
    last = []

    def step():
        last[:] = [pool.submit(torch.mm, a, b)]
        return last[0]

    return Work(step, inputs=(a, b), output=lambda: last[0].result())
