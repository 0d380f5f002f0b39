"""Names its inputs in a layout of its own, and one of them in two parts."""

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
    columns = b.T.contiguous()
    return Work(lambda: a @ columns.T, inputs=(a, columns))
