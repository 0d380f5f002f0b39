"""Looks at who calls it, to say so where it fails."""

import sys

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
        result = a @ b
        assert result.shape == (N, N), sys._getframe(1).f_code.co_name
        return result

    return Work(step, inputs=(a, b))
