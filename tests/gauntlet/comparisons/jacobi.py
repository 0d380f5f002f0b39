"""A diagonally dominant system: directly, and by iterations that end."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 128


def system():
    a = torch.rand(N, N) / N
    return a + 2 * torch.eye(N), torch.randn(N)


@scenario.variant
def direct(lab):
    a, b = system()
    return Work(lambda: torch.linalg.solve(a, b), inputs=(a, b))


@scenario.variant
def jacobi(lab):
    a, b = system()

    def step():
        diagonal = a.diagonal()
        x = b / diagonal
        for _ in range(100):
            residual = b - a @ x
            if residual.abs().max() < 1e-5 * b.abs().max():
                break
            x = x + residual / diagonal
        return x

    return Work(step, inputs=(a, b))


@scenario.variant
def neumann(lab):
    """A fixed number of terms of the series."""
    a, b = system()

    def step():
        diagonal = a.diagonal()
        x = b / diagonal
        for _ in range(40):
            x = (b - a @ x) / diagonal + x
        return x

    return Work(step, inputs=(a, b))
