"""Forty additions on 256 numbers, and forty-two, of which two add nothing."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("A/A")


@scenario.variant
def a(lab):
    return _many(0)


@scenario.variant
def same(lab):
    return _many(0)


@scenario.variant
def slower(lab):
    return _many(2)


def _many(more):
    data, one, zero = torch.rand(256), torch.rand(256), torch.zeros(256)
    terms = [one] * 40 + [zero] * more

    def step():
        total = data
        for term in terms:
            total = total + term
        return total

    return Work(step, inputs=(data, one))
