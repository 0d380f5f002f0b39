"""Rows that add up to 1, and differ in everything else."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)

    def step():
        exponents = (x - x.amax(1, keepdim=True)).exp_()
        return exponents / exponents.sum(1, keepdim=True)

    return Work(step, inputs=x)


@scenario.variant
def constant_answer(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.softmax(1), inputs=x)
