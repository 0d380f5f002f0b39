"""How often each number occurs."""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
VALUES, KINDS = 8192, 64


def numbers():
    return torch.randint(KINDS, (VALUES,))


@scenario.variant
def unique(lab):
    x = numbers()
    return Work(lambda: torch.unique(x, return_counts=True)[1], inputs=x)


@scenario.variant
def bincount(lab):
    x = numbers()
    return Work(lambda: x.bincount(minlength=KINDS), inputs=x)


@scenario.variant
def histogram(lab):
    x = numbers()
    return Work(lambda: x.float().histc(KINDS, 0, KINDS).long(), inputs=x)


@scenario.variant
def scatter(lab):
    x = numbers()
    ones = torch.ones_like(x)
    return Work(lambda: torch.zeros(KINDS, dtype=torch.int64).scatter_add_(0, x, ones), inputs=x)


@scenario.variant
def in_numpy(lab):
    x = numbers().numpy()
    return Work(lambda: np.bincount(x, minlength=KINDS), inputs=x)
