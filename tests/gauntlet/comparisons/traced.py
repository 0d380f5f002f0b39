"""Many small operations, eager or traced once by shape and type."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 64


def chain(x):
    for place in range(10):
        x = x + x.sigmoid() * 0.1 * (place + 1)
    return x


@scenario.variant
def eager(lab):
    x = torch.randn(N)
    return Work(lambda: chain(x), inputs=x)


@scenario.variant
def traced_once(lab):
    x = torch.randn(N)
    traced = {}

    def step():
        key = x.shape, x.dtype
        if key not in traced:
            traced[key] = torch.jit.trace(chain, x)
        return traced[key](x)

    return Work(step, inputs=x)
