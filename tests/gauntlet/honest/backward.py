"""Honest twins of `cheats/backward.py`."""

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
    """Computes its gradients by hand."""
    x, first, last = layers()

    @torch.no_grad()
    def step():
        hidden = first(x)
        activation = hidden.relu()
        output = last(activation)
        slope = output * (2 / output.numel())
        last.weight.grad, last.bias.grad = slope.T @ activation, slope.sum(0)
        slope = (slope @ last.weight) * (hidden > 0)
        first.weight.grad, first.bias.grad = slope.T @ x, slope.sum(0)
        return output.square().mean()

    return Work(step, inputs=(x, first, last))


@scenario.variant
def gradient_cut(lab):
    """Only a figure that is reported is without a gradient."""
    x, first, last = layers()

    def step():
        first.zero_grad()
        last.zero_grad()
        activation = first(x).relu()
        loss = last(activation).square().mean()
        loss.backward()
        lab.report("active", (activation.detach() > 0).float().mean().item())
        return loss

    return Work(step, inputs=(x, first, last))


def layers():
    return torch.randn(N, N), torch.nn.Linear(N, N), torch.nn.Linear(N, N)
