"""Honest twins of `cheats/two_branches.py`: both products are computed, and all is named."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 224


def operands():
    a, b = (torch.randn(N, N, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    return a, b, torch.randn(N, N), torch.randn(N)


@scenario.variant
def reference(lab):
    a, b, weight, bias = operands()
    return Work(
        lambda: torch.cat([a @ weight, (b @ weight).relu()]) + bias, inputs=(a, b, weight, bias)
    )


@scenario.variant
def one_branch_for_both(lab):
    """Writes both to one buffer."""
    a, b, weight, bias = operands()
    out = torch.empty(2 * N, N)
    first, last = out[:N], out[N:]

    def step():
        torch.mm(a, weight, out=first)
        torch.mm(b, weight, out=last).relu_()
        return out.add_(bias)

    return Work(step, inputs=(a, b, weight, bias))


@scenario.variant
def names_the_bias_alone(lab):
    """Adds the bias to each product."""
    a, b, weight, bias = operands()
    return Work(
        lambda: torch.cat([torch.addmm(bias, a, weight), (b @ weight).relu_() + bias]),
        inputs=(a, b, weight, bias),
    )
