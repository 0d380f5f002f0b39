"""Writes both halves to where they belong."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.randn(N, N) * 1e-6


@scenario.variant
def reference(lab):
    a, b, small = operands()
    return Work(lambda: torch.cat([a @ b, small @ b]), inputs=(a, b, small))


@scenario.variant
def half_is_zeros(lab):
    a, b, small = operands()
    out = torch.zeros(2 * N, N)

    def step():
        torch.mm(a, b, out=out[:N])
        torch.mm(small, b, out=out[N:])
        return out

    return Work(step, inputs=(a, b, small))
