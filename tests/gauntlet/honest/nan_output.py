"""Infinity inside, where it is masked, and none in its output."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.ones(N, N).triu(1).bool()


@scenario.variant
def reference(lab):
    a, b, hidden = operands()
    return Work(lambda: (a @ b).masked_fill_(hidden, float("-inf")).softmax(1) * N, inputs=(a, b))


@scenario.variant
def nan_output(lab):
    a, b, hidden = operands()
    bias = torch.zeros(N, N).masked_fill_(hidden, float("-inf"))
    return Work(lambda: torch.addmm(bias, a, b).softmax(1) * N, inputs=(a, b))
