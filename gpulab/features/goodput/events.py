"""Phases of a step, and a window under the profiler with the plain data of both."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.core.events import VariantEvent
from gpulab.core.payloads import CATEGORIES, REST, USEFUL
from gpulab.core.values import (
    Amount,
    Fraction,
    Line,
    Name,
    Number,
    PositiveCount,
    Seconds,
    StepTime,
    Text,
)

_AMOUNTS = (
    "calls",
    "self_s",
    "share",
    "total_s",
    "device_s",
    "device_total_s",
    "memory_bytes",
    "flops",
    "bytes",
)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A row: calls, and their seconds less those of the operations within them; of a window, or of
    a step.

    A row is a kernel or copy of a device (`on_device`), or an operation of the host with what it
    launched. `share` is of the window; rows of several threads or streams may sum to more than 1.
    `shapes` are those of the inputs, such as "64x32, 32", and empty for a kernel. `rows` is over 1
    where this one sums the rest of a table. Of the host's operations, as far as they are known,
    and None otherwise:
    - `total_s` with the operations within them, those of the same row counted once;
    - `device_s` of the kernels that they launched themselves, `device_total_s` with those that the
      operations within them launched;
    - `memory_bytes`, allocated less freed within them, by themselves;
    - `line` of the program that called them ("train.py:42"), `module` ("Net_0.Linear_1");
    - `dtype` of their first tensor ("bf16");
    - `flops`, and `bytes` that must move at least, from shapes and dtypes by a formula.

    `launched_by` is the operation that launched most of a kernel; None where none did.
    """

    name: Text
    calls: Amount
    self_s: Number
    share: Number
    shapes: Text
    on_device: bool
    rows: PositiveCount = 1
    total_s: Amount | None = None
    device_s: Amount | None = None
    device_total_s: Amount | None = None
    memory_bytes: Number | None = None
    line: Line | None = None
    module: Line | None = None
    dtype: Name | None = None
    flops: Amount | None = None
    bytes: Amount | None = None
    launched_by: Text | None = None

    def plus(self, other: Operation) -> Operation:
        """Both as one row: sums, and what they have in common. What either lacks is unknown."""
        changes: dict[str, Any] = {}
        for name in (*_AMOUNTS, "line", "module", "dtype", "launched_by"):
            pair = getattr(self, name), getattr(other, name)
            if name in _AMOUNTS and None not in pair:
                changes[name] = sum(pair)
            elif name in _AMOUNTS or pair[0] != pair[1]:
                changes[name] = None
        return replace(self, **changes)


def by_inputs(operations: Iterable[Operation]) -> list[Operation]:
    """Summed by name and shapes, whoever called them, the longest first: kernels by themselves, and
    where there are none the host's operations.
    """
    rows = list(operations)
    on_device = any(row.on_device for row in rows)
    shown = (row for row in rows if row.on_device == on_device)
    sums = summed(shown, lambda row: (row.name, row.shapes))
    return sorted(sums, key=lambda row: (row.name == REST, -row.self_s))


def summed(
    operations: Iterable[Operation], key: Callable[[Operation], Hashable]
) -> list[Operation]:
    """Those with the same key as one row each, in their order."""
    sums: dict[Hashable, Operation] = {}
    for row in operations:
        of = key(row)
        before = sums.get(of)
        sums[of] = before.plus(row) if before else row
    return list(sums.values())


class LineTime(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a program on which the main thread of a CPU was, by samples of steps.

    `running` is the share of the step in which it ran outside of torch's operations, `waiting` that
    in which it slept or waited: for a socket, a lock, a process, a timer. Time in which others ran
    on its CPU is not of the step. `function` is what the line is in.
    """

    line: Line
    function: Line
    running: Fraction
    waiting: Fraction


_ROUNDING, _ROUNDING_S = 1 + 1e-6, 1e-6


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a window by category, in the order of `CATEGORIES`.

    A window of a device has no "preempted"; one of a CPU has no "communication" and no
    "launch-bound", and as "preempted" all that its thread did not run: what of it was waiting, and
    what contention, is known beside it, or not at all ("not running"). `marked` says whether the
    step marks what is useful; where it does not, all its work counts as useful. `copied_s` is the
    union of a device's copies from and to the host, whatever ran meanwhile. ValueError where the
    categories are others, or a part is larger than the window.
    """

    window_s: Seconds
    seconds: dict[Name, Number]
    marked: bool
    on_device: bool
    copied_s: Seconds = 0.0
    around: dict[Name, Amount] = {}
    """Of a CPU, the share of the recorded operations that begin just after an instant of each
    category: where the time that recording them takes falls.
    """

    def __post_init__(self) -> None:
        if USEFUL not in self.seconds or not {*self.seconds, *self.around} <= set(CATEGORIES):
            raise ValueError("a partition by other categories")
        most_s = self.window_s * _ROUNDING + _ROUNDING_S
        if not all(-_ROUNDING_S <= part_s <= most_s for part_s in self.seconds.values()):
            raise ValueError("a part that is larger than the whole")


class Phases(VariantEvent, frozen=True):
    """One window of steps with phases on and no timed sample in it: seconds of the innermost phase,
    '' outside all.

    `running_s`: those of them in which the thread ran, on a CPU; on a GPU it may be ahead, so there
    are none.
    """

    steps: PositiveCount
    seconds: dict[Name, Seconds]
    running_s: dict[Name, Seconds] = {}


class Profiled(VariantEvent, frozen=True):
    """A window under the profiler, in a worker of its own.

    `plain_s` and `profiled_s` are per step, without and with the profiler. `repeatable`: two
    recordings hold the same operations. `repeated` is the partition of the second, which records
    shapes too, and so takes longer; `operations` are its. Without it they are those of the only
    recording. On a CPU, `waited` is the share of the steps without the profiler in which the thread
    slept or waited. `lines` are those of the program on which it ran outside of torch's operations,
    or waited.
    """

    steps: PositiveCount
    plain_s: StepTime
    profiled_s: Seconds
    partition: Partition
    operations: list[Operation]
    repeatable: bool
    repeated: Partition | None = None
    trace: Text | None = None
    waited: Fraction | None = None
    lines: list[LineTime] = []
