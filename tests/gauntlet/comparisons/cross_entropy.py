"""The loss of a classifier."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, CLASSES = 128, 200


def operands():
    return torch.randn(ROWS, CLASSES) * 3, torch.randint(CLASSES, (ROWS,))


@scenario.variant
def by_hand(lab):
    logits, labels = operands()

    def step():
        probabilities = logits.softmax(1)
        return -probabilities[torch.arange(ROWS), labels].log().mean()

    return Work(step, inputs=(logits, labels))


@scenario.variant
def library(lab):
    logits, labels = operands()
    return Work(lambda: torch.nn.functional.cross_entropy(logits, labels), inputs=(logits, labels))


@scenario.variant
def one_hot(lab):
    logits, labels = operands()
    targets = torch.nn.functional.one_hot(labels, CLASSES).float()
    return Work(
        lambda: torch.nn.functional.cross_entropy(logits, targets), inputs=(logits, targets)
    )


@scenario.variant
def gathered(lab):
    logits, labels = operands()

    def step():
        chosen = logits.gather(1, labels[:, None])[:, 0]
        return (logits.logsumexp(1) - chosen).mean()

    return Work(step, inputs=(logits, labels))
