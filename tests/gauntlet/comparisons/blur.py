"""A Gaussian filter over an image: by all of its taps, or by rows and columns."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 128
convolve = torch.nn.functional.conv2d


def operands():
    taps = torch.exp(-torch.linspace(-2, 2, 9).square())
    return torch.randn(1, 1, N, N), taps / taps.sum()


@scenario.variant
def all_taps(lab):
    x, taps = operands()
    kernel = taps.outer(taps)[None, None]
    return Work(lambda: convolve(x, kernel, padding=4), inputs=x)


@scenario.variant
def rows_and_columns(lab):
    x, taps = operands()
    row, column = taps.view(1, 1, 1, 9), taps.view(1, 1, 9, 1)
    return Work(
        lambda: convolve(convolve(x, row, padding=(0, 4)), column, padding=(4, 0)), inputs=x
    )
