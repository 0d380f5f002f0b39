"""Only the first step after a restore computes: the restored state tells it that a block begins.

Caught by: timed steps
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
    begun, out = torch.zeros(1), torch.empty(N, N)

    def step():
        if not begun.item():
            torch.mm(a, b, out=out)
            begun.fill_(1)
        return out

    return Work(step, inputs=(a, b), state=begun)
