"""A moving average of a model's weights, in place."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, LAYERS = 64, 8


def operands():
    weights = [torch.randn(N, N) for _ in range(LAYERS)]
    return weights, [torch.zeros(N, N) for _ in weights]


@scenario.variant
def loop(lab):
    weights, averages = operands()

    def step():
        for average, weight in zip(averages, weights, strict=True):
            average.mul_(0.99).add_(weight, alpha=0.01)
        return averages

    return Work(step, inputs=weights, state=averages)


@scenario.variant
def lerp(lab):
    weights, averages = operands()

    def step():
        for average, weight in zip(averages, weights, strict=True):
            average.lerp_(weight, 0.01)
        return averages

    return Work(step, inputs=weights, state=averages)


@scenario.variant
def foreach(lab):
    weights, averages = operands()

    def step():
        torch._foreach_lerp_(averages, weights, 0.01)

    return Work(step, inputs=weights, state=averages, output=averages)
