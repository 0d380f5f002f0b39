"""A filter over a signal: directly, by Fourier transforms, by a Toeplitz matrix."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, TAPS = 512, 33
convolve = torch.nn.functional.conv1d


def operands():
    return torch.randn(8, 1, N), torch.randn(TAPS)


@scenario.variant
def direct(lab):
    x, taps = operands()
    return Work(lambda: convolve(x, taps.flip(0)[None, None], padding=TAPS - 1), inputs=(x, taps))


@scenario.variant
def fourier(lab):
    x, taps = operands()
    length = N + TAPS - 1

    def step():
        return torch.fft.irfft(torch.fft.rfft(x, length) * torch.fft.rfft(taps, length), length)

    return Work(step, inputs=(x, taps))


@scenario.variant
def toeplitz(lab):
    """The matrix is made in the build."""
    x, taps = operands()
    matrix = torch.zeros(N, N + TAPS - 1)
    for row in range(N):
        matrix[row, row : row + TAPS] = taps
    return Work(lambda: x @ matrix, inputs=(x, matrix))


@scenario.variant
def windows(lab):
    x, taps = operands()
    padded = torch.nn.functional.pad(x, (TAPS - 1, TAPS - 1))
    return Work(lambda: padded.unfold(2, TAPS, 1) @ taps.flip(0), inputs=(padded, taps))
