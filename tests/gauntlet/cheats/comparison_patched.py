"""Puts a comparison that always agrees in the place of the lab's."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def comparison_patched(lab):
    """Caught by: lab_functions_replaced or context and output"""
    a, b = operands()
    from gpulab.engine.build import tensors

    tensors.agree = lambda output, reference, *, tolerance=None, dtypes=(): tensors.Agreement(
        True, 0.0, 1e-4
    )
    out = torch.zeros(N, N)
    return Work(lambda: out.fill_(1.0), inputs=(a, b))
