"""Holds something for as long as it is built, and lets it go."""

import tempfile

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
    with tempfile.TemporaryFile() as file:
        yield Work(lambda: a @ b, inputs=(a, b))
        file.write(b"done")
