"""Honest twins of `cheats/items.py`: they do as many items as they say."""

from functools import partial

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet", per="item")
ROWS, N = 128, 192


def operands():
    return torch.randn(ROWS, N), torch.randn(N, N), torch.empty(ROWS, N)


@scenario.variant
def reference(lab):
    x, weight, out = operands()
    return Work(
        lambda: torch.mm(x, weight, out=out), inputs=(x, weight), items=ROWS, output=lambda: out[:8]
    )


@scenario.variant
def claims_four_times_the_items(lab):
    x, weight, _ = operands()
    rows, out = x.repeat(4, 1), torch.empty(4 * ROWS, N)
    return Work(
        lambda: torch.mm(rows, weight, out=out),
        inputs=(rows, weight),
        items=4 * ROWS,
        output=lambda: out[:8],
    )


@scenario.variant
def computes_half_of_the_batch(lab):
    x, weight, out = operands()
    half = ROWS // 2
    return Work(
        lambda: torch.mm(x[:half], weight, out=out[:half]),
        inputs=(x, weight),
        items=half,
        output=lambda: out[:8],
    )


@scenario.variant
def claims_items_and_flops(lab):
    """Declares the FLOPs of what it computes."""
    x, weight, out = operands()
    step = partial(torch.mm, x, weight, out=out)
    return Work(
        step, inputs=(x, weight), items=ROWS, output=lambda: out[:8], flops=2 * ROWS * N * N
    )
