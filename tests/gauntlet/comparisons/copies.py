"""A copy of a tensor: to a buffer, or to fresh memory."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 1 << 19


@scenario.variant
def to_a_buffer(lab):
    x, out = torch.randn(N), torch.empty(N)
    return Work(lambda: out.copy_(x), inputs=x)


@scenario.variant
def clone(lab):
    x = torch.randn(N)
    return Work(lambda: x.clone(), inputs=x)


@scenario.variant
def bound_method(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x)


@scenario.variant
def concatenated(lab):
    x = torch.randn(N)
    return Work(lambda: torch.cat([x[: N // 2], x[N // 2 :]]), inputs=x)


@scenario.variant
def in_numpy(lab):
    x = torch.randn(N).numpy()
    return Work(lambda: x.copy(), inputs=x)
