"""Eigenvalues of a symmetric matrix."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 48


def symmetric():
    x = torch.randn(N, N)
    return (x + x.T) / 2


@scenario.variant
def with_vectors(lab):
    a = symmetric()
    return Work(lambda: torch.linalg.eigh(a).eigenvalues, inputs=a)


@scenario.variant
def values_only(lab):
    a = symmetric()
    return Work(lambda: torch.linalg.eigvalsh(a), inputs=a)


@scenario.variant
def upper_half(lab):
    a = symmetric()
    return Work(lambda: torch.linalg.eigvalsh(a, UPLO="U"), inputs=a)
