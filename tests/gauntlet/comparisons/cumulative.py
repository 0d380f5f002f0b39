"""A running sum."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 64, 64


@scenario.variant
def loop(lab):
    x, out = torch.randn(ROWS, N), torch.empty(ROWS, N)

    def step():
        total = torch.zeros(N)
        for row in range(ROWS):
            total = total + x[row]
            out[row] = total
        return out

    return Work(step, inputs=x)


@scenario.variant
def cumsum(lab):
    x = torch.randn(ROWS, N)
    return Work(lambda: x.cumsum(0), inputs=x)


@scenario.variant
def triangular_product(lab):
    x, ones = torch.randn(ROWS, N), torch.ones(ROWS, ROWS).tril()
    return Work(lambda: ones @ x, inputs=x)


@scenario.variant
def doubling(lab):
    x = torch.randn(ROWS, N)

    def step():
        sums, distance = x.clone(), 1
        while distance < ROWS:
            sums[distance:] += sums[:-distance].clone()
            distance *= 2
        return sums

    return Work(step, inputs=x)
