"""The inverse of a permutation."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 20_000


@scenario.variant
def argsort(lab):
    order = torch.randperm(N)
    return Work(lambda: order.argsort(), inputs=order)


@scenario.variant
def scatter(lab):
    order = torch.randperm(N)
    return Work(lambda: torch.empty_like(order).scatter_(0, order, torch.arange(N)), inputs=order)
