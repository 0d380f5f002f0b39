"""One untimed step, and what it computed: the tensors of its output, read or poisoned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.step_clock import wait_for


def step(
    builder: Builder,
    build: Build,
    within: Callable[[], object] | None = None,
    *,
    restored: bool = True,
) -> Any:
    """Take a step and return its output, once it is there: from restored state, or as it is."""
    if restored:
        build.restore()
    returned, _ = builder.step(build, within)
    wait_for(returned)
    builder.wait()
    return returned


def read(build: Build, returned: Any, number: torch.dtype | None = None) -> list[torch.Tensor]:
    """The live tensors of an output.

    `number`: of Python's floats, by default what the step's inputs say.
    """
    return tensors.leaves(build.output(returned), number or build.number_dtype)


def poison_output(
    build: Build, live: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> None:
    """Poison what of an output lies neither in inputs nor in state."""
    shared = tensors.storages([*inputs, *build.state])
    tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & shared])
