"""Activations that are kept, or computed again."""

import torch
from torch.utils.checkpoint import checkpoint

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 64


def operands():
    return torch.randn(N, N, requires_grad=True), [torch.randn(N, N) / 8 for _ in range(4)]


def layers(x, weights):
    for weight in weights:
        x = (x @ weight).tanh()
    return x


def gradient(x, loss):
    return torch.autograd.grad(loss, x)[0]


@scenario.variant
def kept(lab):
    x, weights = operands()
    return Work(lambda: gradient(x, layers(x, weights).sum()), inputs=(x, weights))


@scenario.variant
def computed_again(lab):
    x, weights = operands()
    return Work(
        lambda: gradient(x, checkpoint(layers, x, weights, use_reentrant=False).sum()),
        inputs=(x, weights),
    )


@scenario.variant
def half_of_them(lab):
    x, weights = operands()

    def step():
        middle = checkpoint(layers, x, weights[:2], use_reentrant=False)
        return gradient(x, layers(middle, weights[2:]).sum())

    return Work(step, inputs=(x, weights))
