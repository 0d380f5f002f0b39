"""Steps that are checked: from restored state, on values of their own, with their output read and compared."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.checking import outputs
from gpulab.worker.checking.values import Change
from gpulab.worker.timing.waiting import is_asynchronous

Tensors = list[torch.Tensor]


class Stepping:
    """Of one process. `dtype` is what the `baseline` declares, `reads_inputs` whether its output lies in its inputs."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.baseline: str | None = None
        self.dtype: str | None = None
        self.reads_inputs = False
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
        """Copies of the output of a step on changed inputs, whose values are put back before it is read."""
        write, undo = change.on(inputs)
        undone = False

        def undo_once() -> None:
            nonlocal undone
            undone = True
            undo()

        try:
            write()
            self.builder.wait()
            returned, _ = outputs.step(self.builder, build)
            return self.read_late(build, returned, undo_once)
        finally:
            if not undone:
                undo()
            self.builder.wait()

    def read_late(self, build: Build, returned: object, undo: Callable[[], None]) -> Tensors:
        """Copies of an output, read once its inputs have their own values again: what computes only then is found."""
        if self.reads_inputs:
            output = tensors.kept(outputs.read(build, returned))
            undo()
        else:
            undo()
            self.builder.wait()
            output = tensors.kept(outputs.read(build, returned))
        self.builder.wait()
        return output
