"""Steps that are checked: from restored state, on values of their own, with their output read and
compared.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from gpulab.core.finding import finding
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.measure.clock import is_asynchronous, wait_for
from gpulab.engine.processes.failure import RefusedError
from gpulab.features.checks.values import Change, distance, exchange


def step(
    builder: Builder, build: Build, within: Callable[[], object] | None = None
) -> tuple[Any, float]:
    """One step from restored state, waited for: what it returned, and its seconds without that
    wait.
    """
    build.restore()
    returned, seconds = builder.step(build, within)
    wait_for(returned)
    builder.wait()
    return returned, seconds


def read(build: Build, returned: Any) -> list[torch.Tensor]:
    """The live tensors of an output. A function for them is called here, and arrays are asked for
    their values.
    """
    output: Any = build.work.output
    if output is None:
        output = returned
    output = output() if callable(output) and not hasattr(output, "__dlpack__") else output
    return tensors.leaves(tensors.in_plain_memory(output))


def poison_output(
    build: Build, live: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> None:
    """Poison what of an output lies neither in inputs nor in state."""
    shared = tensors.storages([*inputs, *build.state])
    tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & shared])


def output_lies_in(live: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> bool:
    """Whether any of an output is memory of the inputs."""
    return bool(tensors.storages(live) & tensors.storages(inputs))


_GAINED, _MOVED, _SLACK_S = 0.2, 0.5, {"cpu": 50e-6, "cuda": 200e-6}
"""A step that gains this part of the baseline's may not spend that part of the gain on reading its
output.
"""
_FEWEST_TRIES, _TRYING_S = 5, 0.5
"""Before it is an accusation: a machine with other users makes any one of them longer. With seven
other processes on a GPU each of five took 2 ms too long.
"""


@dataclass(frozen=True)
class ReadingTimes:
    """Seconds of a step, and of reading its output."""

    step_s: float
    read_s: float

    def __add__(self, other: ReadingTimes) -> ReadingTimes:
        """The shorter of both: what is longer was disturbed."""
        return ReadingTimes(min(self.step_s, other.step_s), min(self.read_s, other.read_s))


def timed_step(builder: Builder, build: Build) -> tuple[list[torch.Tensor], ReadingTimes]:
    """A step from restored state: its live output, and the seconds of both."""
    returned, step_s = step(builder, build)
    started = perf_counter()
    live = read(build, returned)
    builder.wait()
    return live, ReadingTimes(step_s, perf_counter() - started)


def require_quick(
    builder: Builder, build: Build, times: ReadingTimes, baseline: ReadingTimes
) -> None:
    """RefusedError where reading the output takes much of what the step gains, however often it is
    tried.
    """
    started, tries = perf_counter(), 0
    while tries < _FEWEST_TRIES or perf_counter() - started < _TRYING_S:
        if not _takes_much(build, times, baseline, builder.device.type):
            return
        _, more = timed_step(builder, build)
        times, tries = times + more, tries + 1
    if _takes_much(build, times, baseline, builder.device.type):
        seconds = {"output_s": times.read_s, "step_s": times.step_s, "baseline_s": baseline.step_s}
        raise RefusedError(finding("output_takes_the_time", **seconds))


def _takes_much(build: Build, times: ReadingTimes, baseline: ReadingTimes, device: str) -> bool:
    gained, more = baseline.step_s - times.step_s, times.read_s - baseline.read_s
    moved = more > max(_MOVED * gained, _SLACK_S.get(device, 0.0))
    return callable(build.work.output) and gained > _GAINED * baseline.step_s and moved


Tensors = list[torch.Tensor]


_WARMED = (torch.float32, torch.bfloat16)
_ELEMENTS = 4096


def warm_checks(device: torch.device) -> None:
    """Have a GPU's kernels for checks loaded, while another process has its turn: each takes
    milliseconds at first.
    """
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
        return tensors.agree(
            output, reference, tolerance=build.work.tolerance, dtypes=(build.work.dtype, self.dtype)
        )

    def step(self, build: Build) -> Tensors:
        """One step from restored state; returns the live output tensors."""
        returned, _ = step(self.builder, build)
        self.asynchronous = is_asynchronous(returned)
        return read(build, returned)

    def output(self, build: Build, change: Change, inputs: Tensors) -> Tensors:
        """Copies of the output of a step on changed inputs, whose values are put back after it."""
        write, undo = change.on(inputs)
        try:
            write()
            self.builder.wait()
            returned, _ = step(self.builder, build)
            return tensors.kept(read(build, returned))
        finally:
            undo()
            self.builder.wait()

    def leaves_unwritten(
        self, build: Build, change: Change, inputs: Tensors, usual: Tensors
    ) -> bool:
        """Whether a step leaves a part of its output unwritten on changed inputs, and on its own
        none.

        Values that no author draws may do that: ranks in a list that is not sorted any more. While
        torch fills all memory that it hands out with NaN, the usual output has to stay what it is.
        """
        before = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
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
        """Copies of the output of a step on the inputs as they are, read once these have
        changed.
        """
        returned, _ = step(self.builder, build)
        write, undo = change.on(inputs)
        try:
            write()
            self.builder.wait()
            return tensors.kept(read(build, returned))
        finally:
            undo()
            self.builder.wait()
