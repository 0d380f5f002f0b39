"""Honest twins of those cheats that make the baseline slower: what they set is theirs alone."""

import contextlib
import gc
import sys

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 64
CONFIG = {"rows at a time": N}
OPERATIONS = torch.library.Library("gauntlet", "DEF")
OPERATIONS.define("rectified(Tensor x) -> Tensor")
OPERATIONS.impl("rectified", lambda x: x.clamp(min=0), "CPU")


def operands():
    return torch.randn(N, N), torch.nn.Linear(N, N).requires_grad_(False)


def rectified(x):
    return x.relu()


@scenario.variant
def reference(lab):
    x, layer = operands()
    return Work(lambda: rectified(layer(x)), inputs=(x, layer))


@scenario.variant
def configured_for_all(lab):
    """Goes by a copy of the configuration."""
    x, layer = operands()
    config = {**CONFIG, "rows at a time": 16}

    def step():
        return torch.cat([rectified(layer(rows)) for rows in x.split(config["rows at a time"])])

    return Work(step, inputs=(x, layer))


@scenario.variant
def hooked_modules(lab):
    """A hook on its own module."""
    x, layer = operands()
    layer.register_forward_hook(lambda module, arguments, output: rectified(output))
    return Work(lambda: layer(x), inputs=(x, layer))


@scenario.variant
def overridden_in_the_dispatcher(lab):
    """An operation of its own in the dispatcher."""
    x, layer = operands()
    return Work(lambda: torch.ops.gauntlet.rectified(layer(x)), inputs=(x, layer))


@scenario.variant
def numpy_sort_replaced(lab):
    """Functions of NumPy under names of its own."""
    x, layer = operands()
    maximum, product = np.maximum, np.matmul
    rows, weight, bias = x.numpy(), layer.weight.numpy(), layer.bias.numpy()
    return Work(lambda: maximum(product(rows, weight.T) + bias, 0), inputs=(x, layer))


@scenario.variant
def helper_doubled(lab):
    """A helper of its own, which it puts beside those of the file."""
    x, layer = operands()
    globals()["own_helper"] = lambda x: x.clamp(min=0)
    return Work(lambda: own_helper(layer(x)), inputs=(x, layer))  # noqa: F821


@scenario.variant
def traced(lab):
    """A tracer that is there during its own steps only."""
    x, layer = operands()
    calls = []

    @contextlib.contextmanager
    def context():
        sys.setprofile(
            lambda frame, event, argument: calls.append(event) if len(calls) < 9 else None
        )
        yield
        sys.setprofile(None)

    return Work(lambda: rectified(layer(x)), inputs=(x, layer), context=context)


@scenario.variant
def garbage_collected(lab):
    """Garbage is not looked for during its own steps, as `timeit` does it."""
    x, layer = operands()

    @contextlib.contextmanager
    def context():
        gc.disable()
        yield
        gc.enable()

    return Work(lambda: rectified(layer(x)), inputs=(x, layer), context=context)


@scenario.variant
def set_by_each_build(lab):
    """Sets something that only its own steps go by."""
    x, layer = operands()
    CONFIG["rows at a time, of the last"] = 32

    def step():
        return torch.cat(
            [rectified(layer(rows)) for rows in x.split(CONFIG["rows at a time, of the last"])]
        )

    return Work(step, inputs=(x, layer))
