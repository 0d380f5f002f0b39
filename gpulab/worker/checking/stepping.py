"""Steps that are checked: from restored state, on values of their own, with their output read and compared."""

from __future__ import annotations

import random
import warnings

import torch

from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.checking import outputs
from gpulab.worker.checking.history import distance
from gpulab.worker.checking.values import Change, exchange
from gpulab.worker.timing.waiting import is_asynchronous

Tensors = list[torch.Tensor]


_WARMED = (torch.float32, torch.bfloat16)
_ELEMENTS = 4096


def warm_checks(device: torch.device) -> None:
    """Have a GPU's kernels for checks loaded, while another process has its turn: each takes milliseconds at first."""
    for dtype in _WARMED:
        live = [torch.rand(_ELEMENTS, device=device).to(dtype)]
        saved = tensors.kept(live)
        tensors.agree(live, saved)
        tensors.agree([live[0] * 2], saved)
        tensors.finite(live)
        tensors.changed(live, saved)
        distance(live, saved)
        if change := exchange(live, random.Random(0)):
            write, undo = change.on(live)
            write()
            undo()
        tensors.poison(saved)
    torch.randn(_ELEMENTS, device=device)
    torch.cuda.synchronize(device)


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

    def leaves_unwritten(self, build: Build, change: Change, inputs: Tensors, usual: Tensors) -> bool:
        """Whether a step leaves a part of its output unwritten on changed inputs, and on its own none.

        Values that no author draws may do that: ranks in a list that is not sorted any more. While torch fills all
        memory that it hands out with NaN, the usual output has to stay what it is.
        """
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.use_deterministic_algorithms(True, warn_only=True)  # which fills it
            try:
                first = tensors.kept(self.step(build))
                changed = self.output(build, change, inputs)
                last = tensors.kept(self.step(build))
            except Exception:
                return False
            finally:
                torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        as_usual = self.agree(build, first, usual).ok and self.agree(build, last, usual).ok
        return as_usual and not tensors.finite(changed)

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
