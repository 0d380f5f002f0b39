"""A step of heat: by shifts, by slices, by a convolution."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 96


@scenario.variant
def shifts(lab):
    x = torch.rand(N, N)

    def step():
        around = x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1)
        return (x + 0.1 * (around - 4 * x))[1:-1, 1:-1]

    return Work(step, inputs=x)


@scenario.variant
def slices(lab):
    x = torch.rand(N, N)

    def step():
        inner = x[1:-1, 1:-1]
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return torch.lerp(inner, around / 4, 0.4)

    return Work(step, inputs=x)


@scenario.variant
def convolution(lab):
    x = torch.rand(N, N)
    kernel = torch.tensor([[0.0, 0.1, 0.0], [0.1, 0.6, 0.1], [0.0, 0.1, 0.0]])
    return Work(
        lambda: torch.nn.functional.conv2d(x[None, None], kernel[None, None])[0, 0], inputs=x
    )
