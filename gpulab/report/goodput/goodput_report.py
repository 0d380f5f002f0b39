"""Where the time of a step goes, as a part of the report."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.protocol.finding import Finding
from gpulab.protocol.operation import Operation


class StepSource(StrEnum):
    """What measured the step that a goodput is a share of."""

    ROUNDS = "rounds"
    PROFILER = "profiler"
    """Of the profiler's process, without it: with warm caches, and its device as it was while it recorded."""


class GoodputReport(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a step goes, as it runs without the profiler. Shares of the step; seconds per step.

    `phases` are the shares of the phases in windows of their own, the live figure: on a GPU an upper bound, since gaps
    between launches count. `goodput` is `seconds["useful"]` over `step_s`, `partition` the share of each part.
    `efficiency` is ideal time by the roofline over useful time, `product` ideal time over all of it; `hidden` is the
    share of the time of a device's copies in which better work ran beside them. `items_per_s` is of an output that was
    checked.
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
    """Whether the step says what is useful; where it does not, everything that torch computes counts."""
    efficiency: float | None = None
    product: float | None = None
    hidden: float | None = None
    items_per_s: float | None = None
    overhead: float | None = None
    """What the profiler adds to a step, relative."""
    uncertainty: float | None = None
    """The largest difference between the goodput and what another way gives: another recording, another time of the
    step, another place for what the profiler adds.
    """
    reliable: bool | None = None
    """Whether the goodput is certain within 5 points: the device is in the recording, both recordings hold the same
    operations, and what they add up to fits into the step.
    """
    accurate: bool | None = None
    """Reliable, and hardly slowed by the profiler: there are no `reasons`, and the idle parts are as recorded."""
    reasons: list[Finding] = []
    operations: list[Operation] = []
    """Calls and seconds of one step."""
    steps: int | None = None
    """How many of them the window had."""
    peak_bytes: int | None = None
    trace: str | None = None
