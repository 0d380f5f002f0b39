"""Where the time of a step goes: phases marked in it, and what a profiler recorded."""

from __future__ import annotations

from gpulab.protocol.event import Event
from gpulab.protocol.operation import Operation
from gpulab.protocol.partition import Partition
from gpulab.protocol.values import Count, Fraction, Name, PositiveCount, Seconds, StepTime, Text


class Phases(Event, frozen=True):
    """One window of steps with phases on and no timed sample in it: seconds of the innermost phase, '' outside all.

    `running_s`: those of them in which the thread ran, on a CPU; on a GPU it may be ahead, so there are none.
    """

    variant: Name
    steps: PositiveCount
    seconds: dict[Name, Seconds]
    running_s: dict[Name, Seconds] = {}


class MemoryUsed(Event, frozen=True):
    """What a variant needs of the device's memory when it runs by itself, beyond what was there before it (bytes).

    `held_bytes` are allocated between two steps, `peak_bytes` at most during a step, held ones included.
    `reserved_bytes` is the most that torch had taken from the device by then; None on a CPU, where it reserves nothing.
    """

    variant: Name
    held_bytes: Count
    peak_bytes: Count
    reserved_bytes: Count | None = None


class Profiled(Event, frozen=True):
    """A window under the profiler, in a worker of its own.

    `plain_s` and `profiled_s` are per step, without and with the profiler. `repeatable`: two recordings hold the same
    operations. `repeated` is the partition of the second, which records shapes too, and so takes longer; `operations`
    are its. Files from before this field have one of both. `peak_bytes`: the most device memory that one step had
    allocated, where it was asked for. On a CPU, `waited` is the share of the steps without the profiler in which the
    thread slept or waited, and `interpreted` that of its own time in which it runs Python's bytecode, None where it was
    not looked at.
    """

    variant: Name
    steps: PositiveCount
    plain_s: StepTime
    profiled_s: Seconds
    partition: Partition
    operations: list[Operation]
    repeatable: bool
    repeated: Partition | None = None
    trace: Text | None = None
    peak_bytes: Count | None = None
    waited: Fraction | None = None
    interpreted: Fraction | None = None
