"""A system with a lower triangular matrix."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 128


def system():
    return torch.randn(N, N).tril() / N + torch.eye(N), torch.randn(N, 8)


@scenario.variant
def general(lab):
    a, b = system()
    return Work(lambda: torch.linalg.solve(a, b), inputs=(a, b))


@scenario.variant
def triangular(lab):
    a, b = system()
    return Work(lambda: torch.linalg.solve_triangular(a, b, upper=False), inputs=(a, b))


@scenario.variant
def by_halves(lab):
    """Only ever reads the lower half."""
    a, b = system()
    half = N // 2

    def step():
        first = torch.linalg.solve_triangular(a[:half, :half], b[:half], upper=False)
        rest = b[half:] - a[half:, :half] @ first
        return torch.cat([first, torch.linalg.solve_triangular(a[half:, half:], rest, upper=False)])

    return Work(step, inputs=(a, b))
