"""The processes of a followed program, and their steps."""

from __future__ import annotations

from enum import StrEnum

from gpulab.core.events import Event, VariantEvent
from gpulab.core.values import (
    Count,
    Moment,
    Name,
    PositiveCount,
    Seconds,
    SignalNumber,
    StepTime,
)


class StepMark(StrEnum):
    """The mark that ends a step of a program: a call of `gpulab.step()`, the first optimizer that
    steps, a step that JAX's profiler is told of, or the outermost call of a module.
    """

    CALL = "gpulab.step"
    ANNOTATION = "StepTraceAnnotation"
    OPTIMIZER = "optimizer"
    MODULE = "module"


class WindowKind(StrEnum):
    """The kind of the steps of a window: the first, warm-up, plain, or with the profiler."""

    FIRST = "first"
    WARM_UP = "warm-up"
    PLAIN = "plain"
    PROFILED = "profiled"


class ProcessFollowed(Event, frozen=True):
    """A Python process of a program that can be followed; said again once it has imported torch or
    JAX: then `torch` is the version, or empty.

    `rank` is its RANK, `ranked` whether it has one; `parent` the process that started it.
    """

    pid: Count
    parent: Count = 0
    ranked: bool = False
    python: Name = ""
    torch: Name | None = None


class ChildExited(Event, frozen=True, kw_only=True):
    """A Python process with torch ended, as the one that started it says: by `code` or by `signal`,
    the other is 0; `at` on the host's clock.
    """

    pid: Count
    code: Count
    signal: SignalNumber
    at: Moment


class StepsFollowed(VariantEvent, frozen=True, kw_only=True):
    """Steps in a row of one process of a program, on the host's clock; `mark` is what ends a step.

    A `synchronised` window begins and ends with an idle device: then `seconds` are what its steps
    take. `between_s` is what following took just before it, in none of its steps. `peak_bytes`: the
    most device memory that torch had allocated so far.
    """

    pid: Count
    kind: WindowKind
    mark: StepMark
    steps: PositiveCount
    kinds: dict[Name, PositiveCount] = {}
    """How many of them did what."""
    seconds: StepTime
    synchronised: bool = False
    attached: bool = False
    """Whether an earlier recording has left a profiler of the device in the process."""
    between_s: Seconds = 0.0
    peak_bytes: Count | None = None
