"""Each step moves an average on, which is named as state and put back before each block."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.zeros(N, N)


@scenario.variant
def reference(lab):
    a, b, average = operands()
    return Work(lambda: average.mul_(0.9).add_(0.1 * (a @ b)), inputs=(a, b), state=average)


@scenario.variant
def first_after_restore(lab):
    a, b, average = operands()
    return Work(lambda: average.mul_(0.9).addmm_(a, b, alpha=0.1), inputs=(a, b), state=average)
