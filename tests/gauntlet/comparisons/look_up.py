"""Rows of a table: by a product with one-hot rows, or by index."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, WORDS, WIDTH = 128, 256, 64


def operands():
    return torch.randint(WORDS, (ROWS,)), torch.randn(WORDS, WIDTH)


@scenario.variant
def one_hot(lab):
    indices, table = operands()
    chosen = torch.nn.functional.one_hot(indices, WORDS).float()
    return Work(lambda: chosen @ table, inputs=(chosen, table))


@scenario.variant
def indexing(lab):
    indices, table = operands()
    return Work(lambda: table[indices], inputs=(indices, table))


@scenario.variant
def embedding(lab):
    indices, table = operands()
    return Work(lambda: torch.nn.functional.embedding(indices, table), inputs=(indices, table))


@scenario.variant
def gather(lab):
    indices, table = operands()
    return Work(
        lambda: table.gather(0, indices[:, None].expand(-1, WIDTH)), inputs=(indices, table)
    )


@scenario.variant
def one_hot_in_the_step(lab):
    indices, table = operands()
    return Work(
        lambda: torch.nn.functional.one_hot(indices, WORDS).float() @ table, inputs=(indices, table)
    )
