"""Counting words that are numbers, by a dictionary of Python and by torch."""

import collections

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
WORDS, KINDS = 2000, 50


def words():
    return torch.randint(KINDS, (WORDS,))


@scenario.variant
def dictionary(lab):
    text = words()

    def step():
        counts = collections.Counter(text.tolist())
        return torch.tensor([counts[word] for word in range(KINDS)])

    return Work(step, inputs=text)


@scenario.variant
def sorted_words(lab):
    text = words()

    def step():
        in_order = text.sort().values
        ends = torch.searchsorted(in_order, torch.arange(KINDS), right=True)
        return ends.diff(prepend=torch.zeros(1, dtype=torch.int64))

    return Work(step, inputs=text)
