"""The bill of a program, as a part of the report: each second of a process, booked to one cause."""

from __future__ import annotations

import msgspec

LEAST, OTHERS, UNBOOKED = 0.005, "rows below 0.5 %", "unbooked"
"""Of the time of a bill that has a row of its own; what the others are called, and what is in none.
"""


class BillRow(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one cause, in one function of the program."""

    cause: str
    of: str = ""
    """The package or module that it is about."""
    seconds: float
    error_s: float = 0.0
    """The standard error of what was sampled; 0 of what was counted."""
    waited_s: float = 0.0
    """Of the seconds, those off the CPU."""
    file: str = ""
    function: str = ""
    lines: list[int] = []
    """The lines with most of it, the first one first."""
    source: str = ""
    """The text of the first line, as it was."""


class CompiledFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One function that was compiled, and the reasons for which it was compiled again."""

    function: str
    file: str
    line: int
    count: int
    seconds: float
    reasons: list[str]


class StepKind(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that did the same: how many, quantiles, and what those are in that took
    over twice the median.
    """

    kind: str
    count: int
    p50_s: float
    p99_s: float
    longest_s: float
    slow: int
    slow_s: float
    rows: list[BillRow]


class ThreadRow(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU time of another thread of Python, and where it was seen most, asleep or not.

    `main_waited_s`: what the main thread waited meanwhile, for it, for the interpreter that it
    held, or for anything else.
    """

    thread: str
    ran_s: float
    main_waited_s: float = 0.0
    row: BillRow


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that grows with the steps, at the same rate in three windows one after the other."""

    bytes_per_step: float
    steps_left: int | None
    """Until what is available is full."""


class ProcessBill(msgspec.Struct, frozen=True, kw_only=True):
    """Processes of one role and rank, all rows together; `wall_s` is the sum of their times."""

    role: str
    rank: int | None = None
    processes: int = 1
    wall_s: float
    rows: list[BillRow]
    sampling_s: float = 0.0
    """What sampling took, in the rows of what it fell into."""
    ended: bool = True
    threads: int = 0
    """That torch computes with; 0 without torch."""
    cores: int = 0
    """That it may use."""
    compiled: list[CompiledFrame] = []
    resident_bytes: int | None = None
    """Its memory when it was last looked at."""
    growth: Growth | None = None
    device_growth: Growth | None = None
    steps: list[StepKind] = []
    other_threads: list[ThreadRow] = []
    graph_s: float = 0.0
    training_s: float = 0.0
    double_s: float = 0.0
    """Sampled seconds in modules of torch that record a graph, in training mode, in fp64."""
    switches: list[tuple[str, str, int]] = []
    """Calls in the program's text that switch something for all of it: which, file, line."""
    differentiates: bool = True
    """Whether a backward or an optimizer was seen in it."""
    page_faults: int = 0
    """Those that read a disk."""
    system_share: float = 0.0
    """Of its CPU time, that in the system."""
    available_bytes: int = 0
    """That it could still get."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One sign: what was seen, its share of the process's time, and what to change. `row` is where,
    None where no line is known.
    """

    sign: str = ""
    seen: str
    share: float = 1.0
    change: str
    lesson: str = ""
    try_: str = msgspec.field(default="", name="try")
    """The switch of `--try` that measures it."""
    row: BillRow | None = None


class BillReport(msgspec.Struct, frozen=True, kw_only=True):
    """The bills of a program's processes; the first is of the one that counts: rank 0, or else the
    one that ran longest.
    """

    bills: list[ProcessBill]
    advice: list[Advice] = []
    """Of the process that counts, by signs that are certain; the largest share first."""
    device: ProcessBill | None = None
    """Of a step: the device, by what it did, and idle by what the host did; None without one."""


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about where the time of a program went."""

    bill: BillReport | None = None
    """None of what is no program, or was not sampled."""
