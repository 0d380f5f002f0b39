"""The output of a step: read from what it returned or named, and spoiled before the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.timing.waiting import wait_for


def step(builder: Builder, build: Build, within: Callable[[], object] | None = None) -> tuple[Any, float]:
    """One step from restored state, waited for: what it returned, and its seconds without that wait."""
    build.restore()
    returned, seconds = builder.step(build, within)
    wait_for(returned)
    builder.wait()
    return returned, seconds


def read(build: Build, returned: Any) -> list[torch.Tensor]:
    """The live tensors of an output. A function for them is called here, and arrays are asked for their values."""
    output: Any = build.work.output
    if output is None:
        output = returned
    output = output() if callable(output) and not hasattr(output, "__dlpack__") else output
    return tensors.leaves(tensors.in_plain_memory(output))


def spoil(build: Build, live: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
    """Poison what of an output lies neither in inputs nor in state."""
    shared = tensors.storages([*inputs, *build.state])
    tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & shared])


def lies_in(live: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> bool:
    """Whether any of an output is memory of the inputs."""
    return bool(tensors.storages(live) & tensors.storages(inputs))
