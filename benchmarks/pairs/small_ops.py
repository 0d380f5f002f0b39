"""Forty additions on 256 numbers: each into a new tensor, against all in place."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("pairs")
ADDITIONS = 40


@scenario.variant
def baseline(lab):
    """A new tensor each."""
    return _into_new_tensors(lab)


@scenario.variant
def twin(lab):
    """The same code once more."""
    return _into_new_tensors(lab)


@scenario.variant
def unlike(lab):
    """One tensor, in place."""
    data, term = _tensors(lab)

    def step():
        total = data.clone()
        for _ in range(ADDITIONS):
            total.add_(term)
        return total

    return Work(step, inputs=(data, term))


def _into_new_tensors(lab):
    data, term = _tensors(lab)

    def step():
        total = data
        for _ in range(ADDITIONS):
            total = total + term
        return total

    return Work(step, inputs=(data, term))


def _tensors(lab):
    return torch.rand(256, device=lab.device), torch.rand(256, device=lab.device)
