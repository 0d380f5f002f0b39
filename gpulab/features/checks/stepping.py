"""Steps that are checked: from restored state, their output read and compared."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

import torch

from gpulab.engine.build import agreement, tensors
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.measure.clock import is_asynchronous, wait_for
from gpulab.engine.processes.failure import RefusedError, WrongOutputError, is_out_of_memory
from gpulab.features.checks.findings import output_takes_the_time
from gpulab.features.checks.values import Change, distance, exchange

Tensors = list[torch.Tensor]
T = TypeVar("T")

FAILS = (RuntimeError, ValueError, IndexError)
"""What a step may raise on values that no author drew."""


def unless_it_fails(make: Callable[[], T]) -> T | None:
    """What is made; None where a step fails on these values. Out of memory is raised."""
    try:
        return make()
    except FAILS as error:
        if is_out_of_memory(error):
            raise
        return None


def step(
    builder: Builder, build: Build, within: Callable[[], object] | None = None
) -> tuple[Any, float]:
    """One step from restored state, waited for: what it returned, its seconds without the wait."""
    build.restore()
    returned, seconds = builder.step(build, within)
    wait_for(returned)
    builder.wait()
    return returned, seconds


def read(build: Build, returned: Any, number: torch.dtype | None = None) -> Tensors:
    """The live tensors of an output; a function for them is called here.

    `number`: of Python's floats, by default what the step's inputs say.
    """
    output: Any = build.work.output
    if output is None:
        output = returned
    if callable(output) and not hasattr(output, "__dlpack__"):
        output = output()
    return tensors.leaves(output, number or build.number_dtype)


def poison_output(
    build: Build, live: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> None:
    """Poison what of an output lies neither in inputs nor in state."""
    shared = tensors.storages([*inputs, *build.state])
    tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & shared])


class Stepping:
    """Of one process. `dtype` is what the `baseline` declares."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.baseline: str | None = None
        self.dtype: str | None = None
        self.widened: dict[str, float] = {}
        """By variant the error that is allowed where it was judged against float64."""
        self.asynchronous = False
        """Whether the step before returned what had to be waited for."""

    def dtypes(self, build: Build) -> tuple[str | None, str | None]:
        """What the build and the baseline declare."""
        return build.work.dtype, self.dtype

    def agree(self, build: Build, output: Tensors, reference: Tensors) -> agreement.Agreement:
        """By the tolerance of a build, and of both dtypes that are declared."""
        return agreement.agree(
            output,
            reference,
            tolerance=build.work.tolerance,
            dtypes=self.dtypes(build),
            widened=self.widened.get(build.variant, 0.0),
        )

    def require(self, build: Build, output: Tensors, reference: Tensors) -> agreement.Agreement:
        """The same. WrongOutputError where they do not agree."""
        agreed = self.agree(build, output, reference)
        if reason := agreement.located(agreed, output, reference):
            raise WrongOutputError(reason, agreed.error)
        return agreed

    def step(self, build: Build) -> Tensors:
        """One step from restored state; returns the live output tensors."""
        return self.timed_step(build)[0]

    def timed_step(self, build: Build) -> tuple[Tensors, ReadingTimes]:
        """The same, with the seconds of the step and of reading its output."""
        returned, step_s = step(self.builder, build)
        self.asynchronous = is_asynchronous(returned)
        started = perf_counter()
        live = read(build, returned)
        self.builder.wait()
        return live, ReadingTimes(step_s, perf_counter() - started)

    def output(
        self, build: Build, change: Change, inputs: Tensors, *, late: bool = False
    ) -> Tensors:
        """Copies of the output of a step on changed inputs, whose values are put back after it.

        `late`: of a step on the inputs as they are, read once these have changed.
        """
        returned = step(self.builder, build)[0] if late else None
        write, undo = change.on(inputs)
        try:
            write()
            self.builder.wait()
            if not late:
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
        deterministic = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
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
                torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        if not self.agree(build, first, usual).ok or not self.agree(build, last, usual).ok:
            return False
        return not tensors.finite(changed)

    def require_quick_reading(
        self, build: Build, times: ReadingTimes, baseline: ReadingTimes
    ) -> None:
        """Catches work that is put off until `Work(output=...)` is called, outside of the clock:
        RefusedError where reading the output takes much of what the step gains, however often it is
        tried.
        """
        if not callable(build.work.output):
            return
        device = self.builder.device.type
        started = perf_counter()
        tries = 0
        while times.takes_much(baseline, device):
            if tries >= _FEWEST_TRIES and perf_counter() - started >= _TRYING_S:
                seconds = {"output_s": times.read_s, "step_s": times.step_s}
                reason = output_takes_the_time(**seconds, baseline_s=baseline.step_s)
                raise RefusedError(reason)
            times += self.timed_step(build)[1]
            tries += 1


_GAINED = 0.2
_MOVED = 0.5
_SLACK_S = {"cpu": 50e-6, "cuda": 200e-6}
"""A step that gains this part of the baseline's may not spend that part of it on reading."""
_FEWEST_TRIES = 5
_TRYING_S = 0.5
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

    def takes_much(self, baseline: ReadingTimes, device: str) -> bool:
        """Whether reading takes much of what the step gains over the baseline's."""
        gained_s = baseline.step_s - self.step_s
        more_s = self.read_s - baseline.read_s
        if gained_s <= _GAINED * baseline.step_s:
            return False
        return more_s > max(_MOVED * gained_s, _SLACK_S.get(device, 0.0))


_WARMED = (torch.float32, torch.bfloat16)
_ELEMENTS = 4096


def warm_checks(device: torch.device) -> None:
    """Load a GPU's kernels for checks while another process has its turn: milliseconds each."""
    for dtype in _WARMED:
        live = [torch.rand(_ELEMENTS, device=device).to(dtype)]
        saved = tensors.kept(live)
        agreement.agree(live, saved)
        agreement.agree([live[0] * 2], saved)
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
