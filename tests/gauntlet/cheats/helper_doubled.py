"""Makes the baseline slower: a helper of the file, which the baseline calls, is replaced."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def product(a, b):
    return a @ b


@scenario.variant
def reference(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: product(a, b), inputs=(a, b))


@scenario.variant
def helper_doubled(lab):
    """Caught by: variants alone or baseline_slowed"""
    a, b = torch.randn(N, N), torch.randn(N, N)
    globals()["product"] = lambda a, b: (a @ b, a @ b)[1]
    return Work(lambda: a @ b, inputs=(a, b))
