"""Loops of Python over numbers; no tensor is read, and none is named."""

import math
import operator
import random

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 2000


def numbers():
    return [random.random() for _ in range(N)]


@scenario.variant
def loop(lab):
    values = numbers()

    def step():
        total = 0.0
        for value in values:
            total += value * value
        return torch.tensor(total)

    return Work(step)


@scenario.variant
def comprehension(lab):
    values = numbers()
    return Work(lambda: torch.tensor(sum(value * value for value in values)))


@scenario.variant
def sumprod(lab):
    values = numbers()
    return Work(lambda: torch.tensor(math.fsum(map(operator.mul, values, values))))


@scenario.variant
def array(lab):
    values = np.array(numbers())
    return Work(lambda: values @ values, inputs=values)
