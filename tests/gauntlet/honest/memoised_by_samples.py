"""A cache of plans, by shape and dtype: what is computed is computed each time."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()
    plans = {}

    def step():
        key = a.shape, b.shape, a.dtype
        if key not in plans:
            plans[key] = torch.mm if len(a.shape) == 2 else torch.bmm
        return plans[key](a, b)

    return Work(step, inputs=(a, b))
