"""Where the time of a step goes, and that of a job: parts of the report."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.findings import Finding
from gpulab.features.goodput.events import LineTime, Operation


class StepSource(StrEnum):
    """The measurement of the step that a goodput is a share of."""

    ROUNDS = "rounds"
    PROFILER = "profiler"
    """Of the profiler's process, without it: with warm caches, and its device as it was while it
    recorded.
    """


class GoodputReport(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the time of a step, as it runs without the profiler. Shares of the step; seconds
    per step.

    `phases` are the shares of the phases in windows of their own, the live figure: on a GPU an
    upper bound, since gaps between launches count. `goodput` is `seconds["useful"]` over `step_s`,
    `partition` the share of each part. `efficiency` is ideal time by the roofline over useful time,
    of the step of the rounds; `hidden` is the share of the time of a device's copies in which
    better work ran beside them. `items_per_s` is of an output that was checked.
    """

    phases: dict[str, float] = {}
    running: dict[str, float] = {}
    """Of each phase, the share in which the thread ran; on a CPU."""
    waiting: list[str] = []
    """Phases in which the thread hardly ran: they wait, or were preempted."""
    goodput: float | None = None
    partition: dict[str, float] = {}
    seconds: dict[str, float] = {}
    """Of each part: they sum to the step."""
    step_s: float | None = None
    step_source: StepSource | None = None
    marked: bool = False
    """Whether the step says what is useful; where it does not, everything that torch computes
    counts.
    """
    efficiency: float | None = None
    hidden: float | None = None
    items_per_s: float | None = None
    overhead: float | None = None
    """What the profiler adds to a step, relative."""
    uncertainty: float | None = None
    """The largest difference between the goodput and what another way gives: another recording,
    or another time of the step.
    """
    reliable: bool | None = None
    """Whether the goodput is certain within 5 points: the device is in the recording, both
    recordings hold the same operations, and what they add up to fits into the step.
    """
    reasons: list[Finding] = []
    """Why it is not reliable; or that the profiler slowed the step, so that the idle parts are
    approximate.
    """
    operations: list[Operation] = []
    """Calls and seconds of one step."""
    lines: list[LineTime] = []
    """Where the main thread of a CPU ran outside of torch's operations, or waited; by samples."""
    steps: int | None = None
    """How many of them the window had."""
    trace: str | None = None


class JobGoodput(msgspec.Struct, frozen=True, kw_only=True):
    """A job of one variant: so many steps, and the seconds of everything from process start to the
    last of them.

    `seconds` are by cause: the parts of the start, build, what the first step and the warm-up take
    longer than steady steps, then the parts of all steps; they sum to `total_s`. Without a profile
    the steps are one part, and `goodput`, useful seconds over all of them, is None. `speedup` is
    against the baseline's job; the job is ahead of it from `ahead_after` steps of the baseline on,
    None where it never is.
    """

    variant: str
    steps: int
    seconds: dict[str, float]
    total_s: float
    goodput: float | None = None
    reliable: bool | None = None
    speedup: float | None = None
    ahead_after: int | None = None


class FromStart(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of all variants that were measured, for the same items: `steps` steps of the
    baseline.
    """

    steps: int
    start_known: bool
    """Whether interpreter, imports, device and file were timed."""
    jobs: list[JobGoodput] = []


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about goodput."""

    goodput: GoodputReport | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about goodput."""

    from_start: FromStart | None = None
    """Of a command that asks for it."""
