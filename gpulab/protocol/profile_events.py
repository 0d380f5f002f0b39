"""Where the time of a step goes: phases marked in it, and what a profiler recorded."""

from __future__ import annotations

from gpulab.protocol.event import Event
from gpulab.protocol.operation import Operation
from gpulab.protocol.partition import Partition


class Phases(Event, frozen=True):
    """One window of steps with phases on and no timed sample in it: seconds of the innermost phase, '' outside all.

    `running_s`: those of them in which the thread ran, on a CPU; on a GPU it may be ahead, so there are none.
    """

    variant: str
    steps: int
    seconds: dict[str, float]
    running_s: dict[str, float] = {}


class Profiled(Event, frozen=True):
    """A window under the profiler, in a worker of its own.

    `plain_s` and `profiled_s` are per step, without and with the profiler. `repeatable`: two recordings hold the same
    operations. `peak_bytes`: the most device memory that one step had allocated, where it was asked for.
    """

    variant: str
    steps: int
    plain_s: float
    profiled_s: float
    partition: Partition
    operations: list[Operation]
    repeatable: bool
    trace: str | None = None
    peak_bytes: int | None = None
