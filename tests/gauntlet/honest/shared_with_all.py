"""Honest twins of `cheats/shared_with_all.py`: they change what is their own."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N, LAYERS = 16, 24
WEIGHT = torch.randn(N, N, generator=torch.Generator().manual_seed(5)) / 4
TYPE = torch.float32


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: layers(x, WEIGHT, TYPE), inputs=x)


@scenario.variant
def weight_with_a_gradient(lab):
    """Has a copy of the weight, which autograd records, but not in its steps."""
    x, own = torch.randn(N, N), WEIGHT.clone().requires_grad_()
    return Work(torch.no_grad()(lambda: layers(x, own, TYPE)), inputs=x)


@scenario.variant
def type_for_all(lab):
    """Has a type of its own, the same."""
    x, dtype = torch.randn(N, N), torch.get_default_dtype()
    return Work(lambda: layers(x, WEIGHT, dtype), inputs=x)


def layers(x, weight, dtype):
    for _ in range(LAYERS):
        x = (x.to(dtype) @ weight.to(dtype)).tanh().float()
    return x
