"""Planted on a CPU: functions that torch.compile compiles, by a backend that takes no time."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("planted", smoke={})


@scenario.variant
def compiles_in_steps(lab):
    """An `if` on a tensor in every layer of a compiled function."""
    return _layers(_by_if)


@scenario.variant(against=None, unchecked="computes something else")
def compiles_in_steps_twin(lab):
    """The same by `torch.where`."""
    return _layers(_by_where)


def _layers(layer):
    def function(data):
        data = layer(data)
        data = layer(data)
        data = layer(data)
        return layer(data)

    data = torch.randn(16, 64)
    run = torch.compile(function, backend="eager")

    @torch.no_grad()
    def step():
        return run(data)

    return Work(step, inputs=data)


def _by_if(data):
    data = torch.relu(data * 1.5 + 0.1)
    if data.amax() > 1:
        data = data / 2
    return data


def _by_where(data):
    data = torch.relu(data * 1.5 + 0.1)
    return torch.where(data.amax() > 1, data / 2, data)
