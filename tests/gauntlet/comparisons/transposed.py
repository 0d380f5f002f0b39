"""Sums of columns of a matrix that is stored by rows, or by columns."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 768


@scenario.variant
def by_rows(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.sum(0), inputs=x)


@scenario.variant
def by_columns(lab):
    x = torch.randn(N, N).T.contiguous()
    return Work(lambda: x.sum(1), inputs=x)


@scenario.variant
def strided_view(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.T.sum(1), inputs=x)


@scenario.variant
def product(lab):
    x, ones = torch.randn(N, N), torch.ones(N)
    return Work(lambda: ones @ x, inputs=x)
