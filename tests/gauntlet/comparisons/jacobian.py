"""The Jacobian of a small function."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 12


def operands():
    return torch.randn(N), torch.randn(N, N)


def function(x, weight):
    return (weight @ x).sin() * x


@scenario.variant
def row_by_row(lab):
    x, weight = operands()
    x.requires_grad_()

    def step():
        out = function(x, weight)
        rows = [torch.autograd.grad(element, x, retain_graph=True)[0] for element in out]
        return torch.stack(rows)

    return Work(step, inputs=(x, weight))


@scenario.variant
def reverse_mode(lab):
    x, weight = operands()
    return Work(lambda: torch.func.jacrev(function)(x, weight), inputs=(x, weight))


@scenario.variant
def forward_mode(lab):
    x, weight = operands()
    return Work(lambda: torch.func.jacfwd(function)(x, weight), inputs=(x, weight))


@scenario.variant
def by_hand(lab):
    x, weight = operands()

    def step():
        angles = weight @ x
        return (angles.cos() * x)[:, None] * weight + angles.sin().diag()

    return Work(step, inputs=(x, weight))
