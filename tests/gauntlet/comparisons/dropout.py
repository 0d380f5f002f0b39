"""Dropout by the lab's generator: all variants draw the same numbers."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 128


@scenario.variant
def comparing(lab):
    x = torch.randn(N, N)
    return Work(lambda: x * (torch.rand(N, N, generator=lab.generator) < 0.9) / 0.9, inputs=x)


@scenario.variant
def selecting(lab):
    x = torch.randn(N, N)
    return Work(
        lambda: torch.where(torch.rand(N, N, generator=lab.generator) < 0.9, x / 0.9, 0.0), inputs=x
    )


@scenario.variant
def in_place(lab):
    x, draws = torch.randn(N, N), torch.empty(N, N)

    def step():
        draws.uniform_(generator=lab.generator)
        return (x * draws.lt(0.9)).div_(0.9)

    return Work(step, inputs=x)
