"""Lessons with CUDA C++ kernels, built on the CPU."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from shim import load_on_cpu

import gpulab.features.kernels.source
from gpulab.core.machine import Device
from gpulab.engine.build import tensors
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.failure import SkippedError

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FIRST_OF_CUDA = "from gpulab.cuda import"
AS_ON_GPU = {"memory_hierarchy": ('if lab.device.type == "cpu":', "if False:")}
"""Of lessons that have a loop for the CPU too: what chooses it."""


@dataclass
class Built:
    """A lesson that was built with some parameters: its works by the names of their variants."""

    params: dict
    works: dict


def names():
    """Of all lessons that have kernels in CUDA C++."""
    return sorted(path.stem for path in SCENARIOS.glob("*.py") if FIRST_OF_CUDA in path.read_text())


def scenario_of(name, replace=None):
    """What its file makes."""
    path = SCENARIOS / f"{name}.py"
    text = path.read_text()
    if replace:
        assert replace[0] in text, f"{name} has no {replace[0]!r}"
        text = text.replace(*replace)
    text = text.replace(*AS_ON_GPU.get(name, ("", "")))
    module = {"__name__": name, "__file__": str(path)}
    exec(compile(text, str(path), "exec"), module)
    return module["scenario"]


def build(name, *, backward=False, replace=None, only=None, **chosen):
    """A lesson on the CPU, as the lab builds it; `replace` is a text of its file with what stands
    there instead.
    """
    scenario = scenario_of(name, replace)
    unknown = set(chosen) - set(scenario.params)
    assert not unknown, f"{name} has no parameter {unknown}"
    params = scenario.resolve(on_cpu=True, smoke=True, chosen=chosen)
    lab = WorkerLab(torch.device("cpu"), Device(kind="cpu", name=""), WorkerPosition(()))
    works, usual = {}, gpulab.features.kernels.source.load
    gpulab.features.kernels.source.load = partial(load_on_cpu, backward=backward)
    try:
        for variant in scenario.variants.values():
            if (only and variant.name not in only) or "triton" in variant.needs:
                continue
            used = variant.function.__code__.co_varnames[: variant.function.__code__.co_argcount]
            torch.default_generator.manual_seed(
                0
            )  # torch.manual_seed keeps a traceback of each call, for a GPU to come
            with suppress(SkippedError):
                given = {key: value for key, value in params.items() if key in used}
                works[variant.name] = variant.function(lab, **given)
    finally:
        gpulab.features.kernels.source.load = usual
    return Built(params, works)


def output(work):
    """What a step of it gives, in memory that was NaN before."""
    inputs = tensors.leaves(work.inputs)
    before = [tensor.clone() for tensor in inputs]
    kept = tensors.storages([*inputs, *tensors.leaves(work.state)])
    tensors.poison(
        [
            tensor
            for tensor in _live_output(work, work.step())
            if not tensors.storages([tensor]) & kept
        ]
    )
    result = [tensor.clone() for tensor in _live_output(work, work.step())]
    assert all(map(torch.equal, inputs, before)), "the step changed its inputs"
    return result


def _live_output(work, returned):
    output = returned if work.output is None else work.output
    return tensors.leaves(output() if callable(output) else output)
