"""A chain of element-wise operations, eager and compiled."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 1 << 15


def chain(x):
    return (x.sigmoid() * x + x.tanh()).square()


@scenario.variant
def eager(lab):
    x = torch.randn(N)
    return Work(lambda: chain(x), inputs=x)


@scenario.variant
def compiled(lab):
    x = torch.randn(N)
    fused = torch.compile(chain)
    return Work(lambda: fused(x), inputs=x)
