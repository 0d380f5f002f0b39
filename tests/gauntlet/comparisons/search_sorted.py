"""Which bin a value falls into."""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
VALUES, BINS = 4096, 32


def operands():
    return torch.randn(VALUES), torch.randn(BINS).sort().values


@scenario.variant
def comparing_with_all(lab):
    values, edges = operands()
    return Work(lambda: (values[:, None] > edges).sum(1), inputs=(values, edges))


@scenario.variant
def bucketize(lab):
    values, edges = operands()
    return Work(lambda: torch.bucketize(values, edges), inputs=(values, edges))


@scenario.variant
def searchsorted(lab):
    values, edges = operands()
    return Work(lambda: torch.searchsorted(edges, values), inputs=(edges, values))


@scenario.variant
def in_numpy(lab):
    values, edges = (tensor.numpy() for tensor in operands())
    return Work(lambda: np.searchsorted(edges, values), inputs=(values, edges))
