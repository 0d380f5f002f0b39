"""Which points lie in a ring: an output of bools."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 1 << 14


def points():
    return torch.randn(N), torch.randn(N)


@scenario.variant
def by_radius(lab):
    x, y = points()

    def step():
        radius = (x * x + y * y).sqrt()
        return (radius > 0.5) & (radius < 1.5)

    return Work(step, inputs=(x, y))


@scenario.variant
def logical_and(lab):
    x, y = points()

    def step():
        radius = (x * x + y * y).sqrt()
        return torch.logical_and(radius.gt(0.5), radius.lt(1.5))

    return Work(step, inputs=(x, y))


@scenario.variant
def negated(lab):
    x, y = points()

    def step():
        radius = (x * x + y * y).sqrt()
        return ~((radius <= 0.5) | (radius >= 1.5))

    return Work(step, inputs=(x, y))
