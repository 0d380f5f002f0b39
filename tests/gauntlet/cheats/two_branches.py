"""Two products with one weight, whose other operands happen to be equal: both are drawn from the
same seed.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

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
    """Computes one of the two products.

    Caught by: said as input_without_effect
    """
    a, b, weight, bias = operands()

    def step():
        product = a @ weight
        return torch.cat([product, product.relu()]) + bias

    return Work(step, inputs=(a, b, weight, bias))


@scenario.variant
def names_the_bias_alone(lab):
    """Computes the products in its build, and names the bias, which the output follows.

    Caught by: inputs
    """
    a, b, weight, bias = operands()
    products = torch.cat([a @ weight, (b @ weight).relu()])
    return Work(lambda: products + bias, inputs=bias, state=(a, b, weight))
