"""Two threads for two halves, joined before the step returns."""

import threading

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
    out, half = torch.empty(N, N), N // 2

    def step():
        thread = threading.Thread(target=lambda: torch.mm(a[:half], b, out=out[:half]))
        thread.start()
        torch.mm(a[half:], b, out=out[half:])
        thread.join()
        return out

    return Work(step, inputs=(a, b))
