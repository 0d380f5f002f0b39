"""Returns JAX-like arrays whose results are there: they are computed where they are asked for."""

import sys
import types

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 384


def operands():
    return torch.randn(N, N), torch.randn(N, N)


@scenario.variant
def reference(lab):
    a, b = operands()
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def suspect(lab):
    a, b = operands()

    sys.modules.setdefault("jaxlib", types.ModuleType("jaxlib"))

    class Array:
        __module__ = "jaxlib"

        def __init__(self):
            self._result = a @ b

        def block_until_ready(self):
            return self

        def __dlpack__(self, **options):
            return self._result.__dlpack__(**options)

        def __dlpack_device__(self):
            return a.__dlpack_device__()

    return Work(Array, inputs=(a, b))
