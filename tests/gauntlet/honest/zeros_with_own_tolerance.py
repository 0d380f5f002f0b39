"""Sums in another order, and names a tolerance that lets through nothing else."""

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

    def step():
        return torch.mm(a[:, : N // 2], b[: N // 2]).addmm_(a[:, N // 2 :], b[N // 2 :])

    return Work(step, inputs=(a, b), tolerance=1e-5)
