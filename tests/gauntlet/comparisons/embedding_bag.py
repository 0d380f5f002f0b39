"""The mean of the vectors of a few words; only the words are named."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
BAGS, WORDS, WIDTH = 128, 16, 64


def operands():
    return torch.randint(500, (BAGS, WORDS)), torch.randn(500, WIDTH)


@scenario.variant
def mean_of_vectors(lab):
    words, table = operands()
    return Work(lambda: torch.nn.functional.embedding(words, table).mean(1), inputs=words)


@scenario.variant
def embedding_bag(lab):
    words, table = operands()
    return Work(lambda: torch.nn.functional.embedding_bag(words, table, mode="mean"), inputs=words)


@scenario.variant
def loop(lab):
    words, table = operands()
    return Work(lambda: sum(table[column] for column in words.T) / WORDS, inputs=words)
