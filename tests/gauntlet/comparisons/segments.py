"""Sums of rows that belong together."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, GROUPS, WIDTH = 512, 16, 16


def operands():
    return torch.randn(ROWS, WIDTH), torch.randint(GROUPS, (ROWS,))


@scenario.variant
def loop(lab):
    x, group = operands()
    return Work(
        lambda: torch.stack([x[group == number].sum(0) for number in range(GROUPS)]),
        inputs=(x, group),
    )


@scenario.variant
def index_add(lab):
    x, group = operands()
    return Work(lambda: torch.zeros(GROUPS, WIDTH).index_add(0, group, x), inputs=(x, group))


@scenario.variant
def scatter_reduce(lab):
    x, group = operands()
    indices = group[:, None].expand(-1, WIDTH)
    return Work(
        lambda: torch.zeros(GROUPS, WIDTH).scatter_reduce(0, indices, x, "sum"), inputs=(x, group)
    )


@scenario.variant
def product(lab):
    x, group = operands()
    numbers = torch.arange(GROUPS)
    return Work(lambda: (numbers[:, None] == group).float() @ x, inputs=(x, group))


@scenario.variant
def sorted_rows(lab):
    """A preprocessed data set: rows that belong together stand together."""
    x, group = operands()
    order, lengths = group.argsort(), group.bincount(minlength=GROUPS)
    rows = x[order]
    return Work(
        lambda: torch.segment_reduce(rows, "sum", lengths=lengths, initial=0.0),
        inputs=(rows, lengths),
    )
