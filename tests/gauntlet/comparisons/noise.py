"""Noise from a generator that each step seeds."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 50_000


def operands():
    return torch.randn(N), torch.Generator()


@scenario.variant
def new_tensors(lab):
    x, generator = operands()

    def step():
        generator.manual_seed(7)
        return x + 0.1 * (torch.rand(N, generator=generator) - 0.5)

    return Work(step, inputs=x)


@scenario.variant
def drawn_in_place(lab):
    (x, generator), noise = operands(), torch.empty(N)

    def step():
        generator.manual_seed(7)
        return torch.add(x - 0.05, noise.uniform_(generator=generator), alpha=0.1)

    return Work(step, inputs=x)
