"""A workspace that is kept, by the size that a step needs."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()
    workspaces = {}

    def step():
        size = a.shape[0], b.shape[1]
        if size not in workspaces:
            workspaces[size] = torch.empty(size)
        return torch.mm(a, b, out=workspaces[size])

    return Work(step, inputs=(a, b))
