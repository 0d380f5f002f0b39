"""A training step without a part of its gradients, which are what it is for.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128


@scenario.variant
def reference(lab):
    x, first, last = layers()

    def step():
        first.zero_grad()
        last.zero_grad()
        loss = last(first(x).relu()).square().mean()
        loss.backward()
        return loss

    return Work(step, inputs=(x, first, last))


@scenario.variant
def no_backward(lab):
    """Only computes the loss.

    Caught by: outputs or said as fewer_flops
    """
    x, first, last = layers()

    @torch.no_grad()
    def step():
        return last(first(x).relu()).square().mean()

    return Work(step, inputs=(x, first, last))


@scenario.variant
def gradient_cut(lab):
    """The gradient ends above the first layer.

    Caught by: outputs or said as fewer_flops
    """
    x, first, last = layers()

    def step():
        last.zero_grad()
        loss = last(first(x).relu().detach()).square().mean()
        loss.backward()
        return loss

    return Work(step, inputs=(x, first, last))


def layers():
    return torch.randn(N, N), torch.nn.Linear(N, N), torch.nn.Linear(N, N)
