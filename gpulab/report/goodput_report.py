"""Where the time of a step goes, as a part of the report."""

from __future__ import annotations

import msgspec

from gpulab.protocol.finding import Finding
from gpulab.protocol.operation import Operation


class GoodputReport(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a step goes. Shares of the step; seconds per step.

    `phases` are the shares of the phases in windows of their own, the live figure: on a GPU an upper bound, since gaps
    between launches count. `goodput` and `partition` are of the profiled window; `reasons` say why they are
    not accurate. `efficiency` is ideal time by the roofline over useful time, `product` ideal time over all of it;
    `hidden` is the share of the time of a device's copies in which better work ran beside them. `items_per_s` is of
    an output that was checked.
    """

    phases: dict[str, float] = {}
    running: dict[str, float] = {}
    """Of each phase, the share in which the thread ran; on a CPU."""
    waiting: list[str] = []
    """Phases in which the thread hardly ran: they wait, or were preempted."""
    goodput: float | None = None
    partition: dict[str, float] = {}
    marked: bool = False
    """Whether the step says what is useful; where it does not, everything that torch computes counts."""
    efficiency: float | None = None
    product: float | None = None
    hidden: float | None = None
    items_per_s: float | None = None
    overhead: float | None = None
    """What the profiler adds to a step, relative."""
    reliable: bool | None = None
    """Whether both recordings agree, and the device is in them."""
    accurate: bool | None = None
    """Reliable, and hardly slowed by the profiler: there are no `reasons`."""
    reasons: list[Finding] = []
    operations: list[Operation] = []
    """Calls and seconds of one step."""
    steps: int | None = None
    """How many of them the window had."""
    peak_bytes: int | None = None
    trace: str | None = None
