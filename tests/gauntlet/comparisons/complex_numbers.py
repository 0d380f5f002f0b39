"""A product of complex matrices."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 96


def operands():
    return torch.randn(N, N, dtype=torch.complex64), torch.randn(N, N, dtype=torch.complex64)


@scenario.variant
def complex_product(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def four_products(lab):
    a, b = operands()

    def step():
        real = a.real @ b.real - a.imag @ b.imag
        return torch.complex(real, a.real @ b.imag + a.imag @ b.real)

    return Work(step, inputs=(a, b))


@scenario.variant
def three_products(lab):
    """By Gauss, from parts that stand by themselves."""
    a, b = operands()
    a_real, a_imag, b_real, b_imag = (
        part.contiguous() for part in (a.real, a.imag, b.real, b.imag)
    )

    def step():
        first = (a_real + a_imag) @ b_real
        second = a_real @ (b_imag - b_real)
        third = a_imag @ (b_real + b_imag)
        return torch.complex(first - third, first + second)

    return Work(step, inputs=(a_real, a_imag, b_real, b_imag))
