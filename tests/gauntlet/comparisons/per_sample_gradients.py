"""The gradient of each sample by itself."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
SAMPLES, N = 6, 24


def operands():
    return torch.randn(SAMPLES, N), torch.randn(SAMPLES), torch.randn(N)


def loss(weight, x, y):
    return (x @ weight - y).square()


@scenario.variant
def loop(lab):
    x, y, weight = operands()
    gradient = torch.func.grad(loss)
    return Work(
        lambda: torch.stack(
            [gradient(weight, row, label) for row, label in zip(x, y, strict=True)]
        ),
        inputs=(x, y, weight),
    )


@scenario.variant
def vmap(lab):
    x, y, weight = operands()
    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    return Work(lambda: gradients(weight, x, y), inputs=(x, y, weight))


@scenario.variant
def by_hand(lab):
    x, y, weight = operands()
    return Work(lambda: 2 * (x @ weight - y)[:, None] * x, inputs=(x, y, weight))
