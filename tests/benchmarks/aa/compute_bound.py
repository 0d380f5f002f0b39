"""A 384 x 400 x 384 product, and one with 5 % more of the inner dimension, which holds zeros."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("A/A")


@scenario.variant
def a(lab):
    return _product(400)


@scenario.variant
def same(lab):
    return _product(400)


@scenario.variant
def slower(lab):
    return _product(420)


def _product(inner):
    left, right = torch.zeros(384, inner), torch.zeros(inner, 384)
    left[:, :400], right[:400] = torch.rand(384, 400), torch.rand(400, 384)
    out = torch.empty(384, 384)
    return Work(lambda: torch.mm(left, right, out=out), inputs=(left[:, :400], right[:400]))
