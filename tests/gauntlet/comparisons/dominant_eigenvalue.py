"""The largest eigenvalue of a covariance with one strong direction."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 64


def covariance():
    x, strong = torch.randn(N, 2 * N), torch.randn(N, 1)
    return x @ x.T / (2 * N) + strong @ strong.T


@scenario.variant
def all_of_them(lab):
    a = covariance()
    return Work(lambda: torch.linalg.eigvalsh(a)[-1], inputs=a)


@scenario.variant
def power_iteration(lab):
    a = covariance()

    def step():
        vector, value = torch.ones(N), 0.0
        for _ in range(100):
            product = a @ vector
            before, value = value, float(product.norm())
            vector = product / value
            if abs(value - before) < 1e-6 * value:
                break
        return vector @ a @ vector

    return Work(step, inputs=a)
