"""The entropy of rows that are probabilities."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 128, 256


def probabilities():
    return torch.randn(ROWS, N).softmax(1)


@scenario.variant
def by_hand(lab):
    p = probabilities()
    return Work(lambda: -(p * p.log()).sum(1), inputs=p)


@scenario.variant
def entr(lab):
    p = probabilities()
    return Work(lambda: torch.special.entr(p).sum(1), inputs=p)


@scenario.variant
def xlogy(lab):
    p = probabilities()
    return Work(lambda: torch.xlogy(p, p).sum(1).neg(), inputs=p)


@scenario.variant
def categorical(lab):
    """Validates that its rows add up to one."""
    p = probabilities()
    return Work(
        lambda: torch.distributions.Categorical(probs=p, validate_args=True).entropy(), inputs=p
    )
