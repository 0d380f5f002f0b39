"""The median of each row."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 64, 255


@scenario.variant
def sort(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.sort(1).values[:, N // 2], inputs=x)


@scenario.variant
def kthvalue(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.kthvalue(N // 2 + 1, 1).values, inputs=x)


@scenario.variant
def median(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.median(1).values, inputs=[x])


@scenario.variant
def quantile(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.quantile(0.5, 1), inputs=x)
