"""Rows through a layer, compared per item.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

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
    """Does the same, and claims four times the items.

    Caught by: said as fewer_flops
    """
    x, weight, out = operands()
    return Work(
        lambda: torch.mm(x, weight, out=out),
        inputs=(x, weight),
        items=4 * ROWS,
        output=lambda: out[:8],
    )


@scenario.variant
def computes_half_of_the_batch(lab):
    """Leaves out rows that `output=` does not show.

    Caught by: said as fewer_flops
    """
    x, weight, out = operands()
    half = ROWS // 2
    return Work(
        lambda: torch.mm(x[:half], weight, out=out[:half]),
        inputs=(x, weight),
        items=ROWS,
        output=lambda: out[:8],
    )


@scenario.variant
def claims_items_and_flops(lab):
    """Computes every other item of those that it claims, and declares the FLOPs of all.

    Caught by: physics or said as flops_differ or said as fewer_flops
    """
    x, weight, _ = operands()
    rows, out, flops = (
        torch.cat([x, torch.randn(ROWS, N)]),
        torch.zeros(2 * ROWS, N),
        2 * 2 * ROWS * N * N,
    )
    step = partial(torch.mm, rows[:ROWS], weight, out=out[:ROWS])
    return Work(step, inputs=(rows, weight), items=2 * ROWS, output=lambda: out[:8], flops=flops)
