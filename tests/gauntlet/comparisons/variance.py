"""The variance of rows, in two passes and in one: rounded in other places."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, COLUMNS = 256, 1024


@scenario.variant
def two_passes(lab):
    x = torch.randn(ROWS, COLUMNS)
    return Work(lambda: (x - x.mean(1, keepdim=True)).square().mean(1), inputs=x)


@scenario.variant
def one_pass(lab):
    x = torch.randn(ROWS, COLUMNS)

    def step():
        squares = torch.linalg.vector_norm(x, dim=1).square_().div_(COLUMNS)
        return squares - x.mean(1).square_()

    return Work(step, inputs=x)


@scenario.variant
def library(lab):
    x = torch.randn(ROWS, COLUMNS)
    return Work(lambda: x.var(1, correction=0), inputs=x)
