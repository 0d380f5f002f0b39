"""A two-dimensional Fourier transform of real numbers."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 128


@scenario.variant
def whole(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.fft.fft2(x)[:, : N // 2 + 1], inputs=x)


@scenario.variant
def real(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.fft.rfft2(x), inputs=x)


@scenario.variant
def one_axis_at_a_time(lab):
    x = torch.randn(N, N)
    return Work(lambda: torch.fft.fft(torch.fft.rfft(x, dim=1), dim=0), inputs=x)
