"""The lab's comparison always agrees for as long as this variant is built, and is put back then."""

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
def comparison_patched_for_a_while(lab):
    """Caught by: lab_functions_replaced or null answers"""
    a, b = operands()
    from gpulab.engine.build import tensors

    agree = tensors.agree
    tensors.agree = lambda output, reference, **how: agree(reference, reference, **how)
    out = torch.zeros(N, N)
    yield Work(lambda: out.fill_(1.0), inputs=(a, b))
    tensors.agree = agree
