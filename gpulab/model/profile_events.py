"""Where the time of a step goes: phases between marks, and what a profiler recorded."""

from __future__ import annotations

from gpulab.model.event import Event
from gpulab.model.goodput import Partition
from gpulab.model.operations import Operation


class Phases(Event, frozen=True):
    """One window of steps with marks on, and no timed sample in it: seconds of the innermost mark; '' is unmarked.

    `ran`: those of them in which the thread ran, on a CPU; on a GPU it may be ahead, so there are none.
    """

    variant: str
    steps: int
    seconds: dict[str, float]
    ran: dict[str, float] = {}


class Profiled(Event, frozen=True):
    """A window under the profiler, in a worker of its own.

    `plain_s` and `profiled_s` are per step, without and with the profiler; `same` whether two recordings hold the
    same operations; `peak_bytes` is the most memory of the device that one step had allocated, where it was asked for.
    """

    variant: str
    steps: int
    plain_s: float
    profiled_s: float
    partition: Partition
    operations: list[Operation]
    same: bool
    trace: str | None = None
    peak_bytes: int | None = None
