"""The gradient of a least-squares loss."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 128, 64


def operands():
    return torch.randn(ROWS, N), torch.randn(ROWS), torch.randn(N)


@scenario.variant
def backward(lab):
    x, y, weight = operands()
    weight.requires_grad_()

    def step():
        weight.grad = None
        (x @ weight - y).square().mean().backward()
        return weight.grad

    return Work(step, inputs=(x, y, weight))


@scenario.variant
def by_hand(lab):
    x, y, weight = operands()
    return Work(lambda: x.T @ (x @ weight - y) * (2 / ROWS), inputs=(x, y, weight))


@scenario.variant
def autograd_grad(lab):
    x, y, weight = operands()
    weight.requires_grad_()
    return Work(
        lambda: torch.autograd.grad((x @ weight - y).square().mean(), weight)[0],
        inputs=(x, y, weight),
    )


@scenario.variant
def functional(lab):
    x, y, weight = operands()
    gradient = torch.func.grad(lambda weight: (x @ weight - y).square().mean())
    return Work(lambda: gradient(weight), inputs=(x, y, weight))
