"""The loss of a classifier: an average, which a part of the rows has too, to the precision of
bfloat16.
"""

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
    return Work(lambda: loss(x @ weight, labels), inputs=(x, weight, labels), dtype="bf16")


@scenario.variant
def loss_over_a_quarter(lab):
    """Only looks at every fourth row.

    Caught by: outputs or inputs or timed steps or said as fewer_flops
    """
    x, weight, labels = operands()
    return Work(
        lambda: loss(x[::4] @ weight, labels[::4]), inputs=(x, weight, labels), dtype="bf16"
    )


def loss(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels)
