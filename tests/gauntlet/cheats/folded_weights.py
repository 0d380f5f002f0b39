"""Two layers without anything between them."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    x, first, last = operands()
    return Work(lambda: x @ first @ last, inputs=x)


@scenario.variant
def folded_weights(lab):
    """Names no weights, and multiplies them in the build.

    Caught by: said as unnamed_tensors or said as fewer_flops
    """
    x, first, last = operands()
    weight = first @ last
    return Work(lambda: x @ weight, inputs=x)
