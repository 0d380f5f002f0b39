"""Steps that are checked: from restored state, on values of their own, with their output read and compared."""

from __future__ import annotations

import torch

from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.checking import outputs
from gpulab.worker.checking.values import Change
from gpulab.worker.timing.waiting import is_asynchronous

Tensors = list[torch.Tensor]


class Stepping:
    """Of one process. `dtype` is what the `baseline` declares."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.baseline: str | None = None
        self.dtype: str | None = None
        self.asynchronous = False
        """Whether the step before returned what had to be waited for."""

    def agree(self, build: Build, output: Tensors, reference: Tensors) -> tensors.Agreement:
        """By the tolerance of a build, and of both dtypes that are declared."""
        return tensors.agree(output, reference, tolerance=build.work.tolerance, dtypes=(build.work.dtype, self.dtype))

    def step(self, build: Build) -> Tensors:
        """One step from restored state; returns the live output tensors."""
        returned, _ = outputs.step(self.builder, build)
        self.asynchronous = is_asynchronous(returned)
        return outputs.read(build, returned)

    def output(self, build: Build, change: Change, inputs: Tensors) -> Tensors:
        """Copies of the output of a step on changed inputs, whose values are put back after it."""
        write, undo = change.on(inputs)
        try:
            write()
            self.builder.wait()
            returned, _ = outputs.step(self.builder, build)
            return tensors.kept(outputs.read(build, returned))
        finally:
            undo()
            self.builder.wait()

    def late_output(self, build: Build, change: Change, inputs: Tensors) -> Tensors:
        """Copies of the output of a step on the inputs as they are, read once these have changed."""
        returned, _ = outputs.step(self.builder, build)
        write, undo = change.on(inputs)
        try:
            write()
            self.builder.wait()
            return tensors.kept(outputs.read(build, returned))
        finally:
            undo()
            self.builder.wait()
