"""Rows in another order: by a permutation matrix, or by index."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, WIDTH = 192, 32


def operands():
    return torch.randperm(N), torch.randn(N, WIDTH)


@scenario.variant
def matrix(lab):
    order, x = operands()
    permutation = torch.eye(N)[order]
    return Work(lambda: permutation @ x, inputs=(permutation, x))


@scenario.variant
def index(lab):
    order, x = operands()
    return Work(lambda: x[order], inputs=(order, x))


@scenario.variant
def index_select(lab):
    order, x = operands()
    return Work(lambda: x.index_select(0, order), inputs=(order, x))


@scenario.variant
def scattered_to_a_buffer(lab):
    order, x = operands()
    inverse, out = order.argsort(), torch.empty(N, WIDTH)
    return Work(lambda: out.index_copy_(0, inverse, x), inputs=(inverse, x))
