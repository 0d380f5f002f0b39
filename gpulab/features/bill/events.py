"""Where the time of one process of a program went."""

from __future__ import annotations

from typing import Annotated

import msgspec

from gpulab.core.events import Event, VariantEvent
from gpulab.core.values import Count, Line, Moment, Name, PositiveCount, Seconds, Text

MOST_ROWS = 200


class BookedTime(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Time of the main thread that samples booked to a cause and to the innermost line of the
    program. `of` is the package or module that the cause is about.
    """

    cause: Name
    of: Line
    file: Line
    line: Count
    function: Line
    ran_s: Seconds
    waited_s: Seconds
    source: Text = ""
    """The text of the line, as it was."""


class SlowRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What slow steps were in, by samples."""

    cause: Name
    of: Line
    file: Line
    line: Count
    function: Line
    seconds: Seconds


class KindOfStep(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Steps of one kind: quantiles, and those that took over twice the median."""

    kind: Name
    count: Count
    p50_s: Seconds
    p99_s: Seconds
    longest_s: Seconds
    slow: Count
    slow_s: Seconds
    rows: Annotated[list[SlowRow], msgspec.Meta(max_length=MOST_ROWS)]


class ThreadTime(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Time of another thread, beside that of the main one, sampled when that can be."""

    thread: Name
    cause: Name
    of: Line
    file: Line
    line: Count
    function: Line
    seconds: Seconds
    ran_s: Seconds = 0.0
    """Of the thread, in all of its places: CPU time."""
    main_waited_s: Seconds = 0.0
    """What the main thread waited meanwhile."""


class Look(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Memory at a moment: resident bytes, steps until then, and bytes that torch had of a GPU."""

    at: Moment
    resident_bytes: Count
    steps: Count
    device_bytes: Count


class InModules(msgspec.Struct, frozen=True, kw_only=True):
    """Sampled seconds in modules of torch: that record a graph, in training mode, in fp64."""

    graph: Seconds = 0.0
    training: Seconds = 0.0
    double: Seconds = 0.0


class Compilation(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One compilation by Dynamo of a frame of the program; `reason`: the guard that failed, where
    it was compiled again.
    """

    function: Line
    file: Line
    line: Count
    seconds: Seconds
    reason: Text


class ProcessBooked(Event, frozen=True, kw_only=True):
    """The bill of one process so far: all that passed in its main thread from `begun` to `until`,
    on the clock that all processes share. It was `started` before that.

    `own_s` is what sampling took. `collected_s` (garbage collection, by its callbacks) and
    `preempted_s` (others had the CPU, by the scheduler) are in no row.
    """

    pid: Count
    parent: Count
    role: Name
    is_root: bool = False
    """Whether it is the program itself, whose end is known."""
    ranked: bool = False
    """Whether its environment names a rank."""
    started: Moment
    begun: Moment
    until: Moment
    ended: bool
    samples: Count
    own_s: Seconds
    collected_s: Seconds
    collections: Count
    preempted_s: Seconds
    rows: Annotated[list[BookedTime], msgspec.Meta(max_length=MOST_ROWS)]
    other_s: Seconds
    """In rows that are not here."""
    compilations: Annotated[list[Compilation], msgspec.Meta(max_length=MOST_ROWS)] = []
    threads: Count = 0
    """That torch computes with; 0 without torch."""
    cores: Count = 0
    """That the process may use."""
    steps: Annotated[list[KindOfStep], msgspec.Meta(max_length=MOST_ROWS)] = []
    other_threads: Annotated[list[ThreadTime], msgspec.Meta(max_length=MOST_ROWS)] = []
    in_modules: InModules = InModules()
    switches: Annotated[list[tuple[Name, Line, Count]], msgspec.Meta(max_length=MOST_ROWS)] = []
    """Calls in the program's text that switch something for all of it: which, file, line."""
    faults: tuple[Count, Seconds, Seconds] = (0, 0.0, 0.0)
    """Major page faults, seconds of user code, and of the system."""
    place: Line = ""
    """Where the main thread was sampled last."""
    available: Count = 0
    """Bytes that it could still get."""
    memory: Annotated[list[Look], msgspec.Meta(max_length=MOST_ROWS)] = []


class DeviceTime(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Time of a device by cause: of a kernel or copy with its operation and the line of the program
    that called it; or idle, with what the host called then.
    """

    cause: Name
    of: Text
    operation: Text
    line: Line
    seconds: Seconds


class DeviceBooked(VariantEvent, frozen=True, kw_only=True):
    """The bill of a device in a recording of `steps`."""

    steps: PositiveCount
    rows: Annotated[list[DeviceTime], msgspec.Meta(max_length=MOST_ROWS)]
