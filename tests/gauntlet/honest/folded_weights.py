"""Names its weights, and multiplies them in each step."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    x, first, last = operands()
    return Work(lambda: x @ first @ last, inputs=(x, first, last))


@scenario.variant
def folded_weights(lab):
    x, first, last = operands()
    return Work(lambda: x @ (first @ last), inputs=(x, first, last))
