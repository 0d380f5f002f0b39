"""`context=` computes when it is entered, outside of the clock.

Caught by: context and output
"""

import contextlib

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
def suspect(lab):
    a, b = operands()
    out = torch.empty(N, N)

    @contextlib.contextmanager
    def context():
        torch.mm(a, b, out=out)
        yield

    return Work(lambda: out, inputs=(a, b), context=context)
