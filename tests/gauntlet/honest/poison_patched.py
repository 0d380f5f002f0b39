"""Poisons its own buffer before it writes to it."""

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
    out = torch.empty(N, N)
    return Work(lambda: torch.mm(a, b, out=out.fill_(float("nan"))), inputs=(a, b))
