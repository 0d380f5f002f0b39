"""Rows through a layer, a few or many in a step."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons", per="item")
N = 256


def operands(rows):
    weight = torch.randn(N, N)
    return torch.randn(rows, N), weight


def layer(rows):
    x, weight = operands(rows)
    out = torch.empty(rows, N)
    return Work(
        lambda: torch.mm(x, weight, out=out), inputs=(x, weight), items=rows, output=lambda: out[:8]
    )


@scenario.variant
def eight(lab):
    return layer(8)


@scenario.variant
def thirty_two(lab):
    return layer(32)


@scenario.variant
def many(lab):
    return layer(128)
