"""A fixed point by a hundred iterations, or by as many as it takes."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, MOST = 128, 100


def operands():
    matrix = torch.randn(N, N)
    return 0.4 * matrix / torch.linalg.matrix_norm(matrix, 2), torch.randn(N)


@scenario.variant
def all_iterations(lab):
    a, b = operands()

    def step():
        x = b
        for _ in range(MOST):
            x = a @ x + b
        return x

    return Work(step, inputs=(a, b))


@scenario.variant
def until_it_stands_still(lab):
    a, b = operands()

    def step():
        x = b
        for _ in range(MOST):
            previous, x = x, torch.addmv(b, a, x)
            if (x - previous).abs().max().item() < 3e-7:
                break
        return x

    return Work(step, inputs=(a, b))
