"""The nearest of some points: an output of indices."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
QUERIES, POINTS, N = 128, 64, 16


def operands():
    return torch.randn(QUERIES, N), torch.randn(POINTS, N)


@scenario.variant
def all_differences(lab):
    queries, points = operands()
    return Work(
        lambda: (queries[:, None] - points).square().sum(2).argmin(1), inputs=(queries, points)
    )


@scenario.variant
def cdist(lab):
    queries, points = operands()
    return Work(lambda: torch.cdist(queries, points).argmin(1), inputs=(queries, points))


@scenario.variant
def product(lab):
    queries, points = operands()

    def step():
        return (points.square().sum(1) - 2 * queries @ points.T).argmin(1)

    return Work(step, inputs=(queries, points))
