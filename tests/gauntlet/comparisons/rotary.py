"""Rotary positions: tables made in each step, or kept by shape, type and device, as libraries
do.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
LENGTH, WIDTH = 128, 64
TABLES = {}


def table():
    angles = torch.arange(LENGTH)[:, None] * 10_000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    return angles.cos(), angles.sin()


def rotated(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


@scenario.variant
def in_each_step(lab):
    x = torch.randn(4, LENGTH, WIDTH)
    return Work(lambda: rotated(x, *table()), inputs=x)


@scenario.variant
def kept_by_shape(lab):
    x = torch.randn(4, LENGTH, WIDTH)

    def step():
        key = x.shape, x.dtype, x.device
        if key not in TABLES:
            TABLES[key] = table()
        return rotated(x, *TABLES[key])

    return Work(step, inputs=x)
