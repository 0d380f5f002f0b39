"""A block-diagonal matrix, whole and by its blocks."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
BLOCKS, N = 8, 48


def operands():
    return torch.randn(BLOCKS, N, N), torch.randn(BLOCKS * N, 16)


@scenario.variant
def whole(lab):
    blocks, x = operands()
    matrix = torch.block_diag(*blocks)
    return Work(lambda: matrix @ x, inputs=(matrix, x))


@scenario.variant
def by_blocks(lab):
    blocks, x = operands()
    return Work(lambda: (blocks @ x.view(BLOCKS, N, 16)).view(BLOCKS * N, 16), inputs=(blocks, x))


@scenario.variant
def in_a_loop(lab):
    blocks, x = operands()
    return Work(
        lambda: torch.cat([block @ rows for block, rows in zip(blocks, x.split(N), strict=True)]),
        inputs=(blocks, x),
    )
