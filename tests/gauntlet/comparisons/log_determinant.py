"""The logarithm of the determinant of a covariance."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 96


def covariance():
    x = torch.randn(N, 2 * N)
    return x @ x.T / (2 * N)


@scenario.variant
def general(lab):
    a = covariance()
    return Work(lambda: torch.linalg.slogdet(a).logabsdet, inputs=a)


@scenario.variant
def cholesky(lab):
    a = covariance()
    return Work(lambda: 2 * torch.linalg.cholesky(a).diagonal().log().sum(), inputs=a)


@scenario.variant
def eigenvalues(lab):
    a = covariance()
    return Work(lambda: torch.linalg.eigvalsh(a).log().sum(), inputs=a)
