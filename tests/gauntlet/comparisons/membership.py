"""Which numbers stand in a sorted list: integers in, bools out."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, KEYS = 2000, 256


def operands():
    return torch.randint(8 * KEYS, (KEYS,)).sort().values, torch.randint(8 * KEYS, (N,))


@scenario.variant
def all_pairs(lab):
    keys, x = operands()
    return Work(lambda: (x[:, None] == keys).any(1), inputs=(keys, x))


@scenario.variant
def binary_search(lab):
    keys, x = operands()
    return Work(
        lambda: keys[torch.searchsorted(keys, x).clamp_(max=KEYS - 1)] == x, inputs=(keys, x)
    )


@scenario.variant
def isin(lab):
    keys, x = operands()
    return Work(lambda: torch.isin(x, keys), inputs=(keys, x))
