"""Looks at all rows, a quarter of them at a time."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
ROWS, CLASSES, WIDTH = 8192, 32, 16


def operands():
    x, weight = torch.randn(ROWS, WIDTH), torch.randn(WIDTH, CLASSES) / WIDTH**0.5
    return x, weight, torch.randint(CLASSES, (ROWS,))


@scenario.variant
def reference(lab):
    x, weight, labels = operands()
    return Work(lambda: loss(x @ weight, labels), inputs=(x, weight, labels))


@scenario.variant
def loss_over_a_quarter(lab):
    x, weight, labels = operands()

    def step():
        losses = [loss(x[part::4] @ weight, labels[part::4]) for part in range(4)]
        return torch.stack(losses).mean()

    return Work(step, inputs=(x, weight, labels))


def loss(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels)
