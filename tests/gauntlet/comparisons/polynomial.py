"""A polynomial at many points: by powers, by Horner, with the coefficients as numbers or in a
tensor.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 1 << 13
COEFFICIENTS = (0.5, -1.0, 0.25, 2.0, -0.125)


@scenario.variant
def powers(lab):
    x = torch.rand(N) * 2 - 1
    return Work(
        lambda: sum(factor * x**power for power, factor in enumerate(COEFFICIENTS)), inputs=x
    )


@scenario.variant
def horner(lab):
    x = torch.rand(N) * 2 - 1

    def step():
        result = torch.full_like(x, COEFFICIENTS[-1])
        for factor in COEFFICIENTS[-2::-1]:
            result = result * x + factor
        return result

    return Work(step, inputs=x)


@scenario.variant
def vandermonde(lab):
    x = torch.rand(N) * 2 - 1
    factors = torch.tensor(COEFFICIENTS)
    return Work(lambda: torch.vander(x, len(factors), increasing=True) @ factors, inputs=x)
