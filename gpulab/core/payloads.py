"""The plain data inside events: ceilings, kernels, operations, parts of a recorded window, and what
was tuned.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from gpulab.core.findings import Finding
from gpulab.core.limits import CANDIDATES
from gpulab.core.statuses import RankActivity
from gpulab.core.values import (
    Amount,
    Count,
    Fraction,
    Line,
    Moment,
    Name,
    Number,
    PositiveAmount,
    PositiveCount,
    Seconds,
    StepTime,
    Text,
)

MEASURED, DERIVED, DATASHEET = "measured", "derived", "datasheet"
SOURCES = (MEASURED, DERIVED, DATASHEET)
"""The best source first."""
MEMORY, CACHE, MATRIX, VECTOR, LAUNCH = "device memory", "cache", "matrix", "vector", "launch"
HOST_TO_DEVICE, DEVICE_TO_HOST = "host to device", "device to host"
ALL_REDUCE, RANK_TO_RANK = "all-reduce", "rank to rank"
RANK_LINKS = (ALL_REDUCE, RANK_TO_RANK)
"""Between the ranks of a scenario, in bus bandwidth."""
HOST_LINKS = (HOST_TO_DEVICE, DEVICE_TO_HOST)
LINKS = (*HOST_LINKS, *RANK_LINKS)
ALL_REDUCE_LATENCY = "all-reduce latency"
PAGE_FAULT = "page fault"
COSTS = (LAUNCH, PAGE_FAULT, ALL_REDUCE_LATENCY)
"""What takes seconds, less of which is better: no roof of any work."""
UNSTEADY = 1.5
"""A best figure this many times the median was luck, or the median was disturbed: neither is a
ceiling.
"""
_FAMILIES = {"fp16": "fp16/bf16", "bf16": "fp16/bf16"}


def family(dtype: str | None) -> str:
    """The name of the dtypes that share a roof; work without a dtype is fp32."""
    return _FAMILIES.get(dtype or "fp32", dtype or "fp32")


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling in B/s, FLOP/s, or seconds where less is better.

    `roof` is what limits, one of those that scenarios name; `kind` is how, or in which dtype:
    triad, fp32, pinned. Shares are of the `median`; `median_low` and `median_high` are the ends of
    its exact interval, None where there were too few samples for one. `spread` is the interquartile
    range over the median. `method` says how it was measured or derived. `processes` in which it was
    measured between the blocks of a run, the samples then being their medians; 0 where it was not.
    """

    roof: Name
    kind: Name
    unit: Name
    best: PositiveAmount
    median: PositiveAmount
    spread: Amount = 0.0
    samples: Count = 0
    source: Name = MEASURED
    method: Finding | None = None
    sm_mhz: Amount | None = None
    median_low: PositiveAmount | None = None
    median_high: PositiveAmount | None = None
    processes: Count = 0

    @property
    def name(self) -> str:
        return f"{self.roof} {self.kind}".rstrip()

    @property
    def key(self) -> tuple[str, str]:
        return self.roof, self.kind

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the median lies; without an interval as far as the best of the samples is
        from it.
        """
        if self.median_low is None or self.median_high is None:
            return min(self.best, self.median), max(self.best, self.median)
        return self.median_low, self.median_high

    @property
    def highest(self) -> float:
        """The most that was seen of it: nothing is faster."""
        return max(self.best, self.ends[1])

    @property
    def steady(self) -> bool:
        """Whether best and median, and the ends of its interval, agree well enough for the ceiling
        to be used.

        What was measured between the blocks of a run drifts with them, and is used as it is.
        """
        low, high = min(self.best, self.ends[0]), max(self.best, self.ends[1])
        return (
            self.processes > 0
            or max(high / self.median, self.median / low, self.ends[1] / self.ends[0]) <= UNSTEADY
        )


class KernelText(msgspec.Struct, frozen=True):
    """What is compiled, and how it is launched: `name` in the source `code`, which begins at `line`
    of its file.

    `threads` of a block, x, y and z; None where the text does not say. `shared_bytes` of dynamic
    shared memory.
    """

    name: str
    code: str
    line: int
    options: tuple[str, ...] = ()
    threads: tuple[int, int, int] | None = None
    shared_bytes: int = 0


class KernelCode(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel for one architecture, and how it is launched.

    `instructions` counts those of the code by class (`load_128`, `fma`, `tensor`, ...), each once
    however often it runs; `read_from` says whether that is machine code (SASS) or PTX, where there
    is no disassembler.
    """

    name: Line
    arch: Name
    threads: PositiveCount | None = None
    """Of a block; None where the file does not say."""
    stages: Count | None = None
    """Of Triton's software pipelining: so many rounds of a loop have their loads under way; None of
    CUDA C++.
    """
    registers: Count
    """Of a thread."""
    spill_bytes: Count = 0
    """What a thread stores to local memory, and loads again, because registers did not suffice."""
    shared_bytes: Count = 0
    """Of a block, dynamic ones included."""
    occupancy: Fraction | None = None
    """The most warps that fit on an SM at once over the most that it can hold; None where threads
    are not known.
    """
    limiter: Name | None = None
    """What keeps more blocks from fitting: threads, registers, shared memory, or blocks."""
    instructions: dict[Name, Count] = {}
    read_from: Name = "SASS"
    digest: Name = ""
    """Of the instructions with their operands, whichever registers they are in: the same code has
    the same.
    """
    bank_conflicts: PositiveCount | None = None
    """Of shared memory: passes that the worst access of a warp takes; 1 is none, None where no
    address is known.
    """
    load_use: Fraction | None = None
    store_use: Fraction | None = None
    """Of the 32-byte sectors that the worst access of a warp to global memory touches, the share
    that it uses.
    """


REST = "..."
"""The name of the row that sums the rest of a table."""
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
_COMMON = ("line", "module", "dtype", "launched_by")


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
        amounts: dict[str, Any] = {}
        for name in _AMOUNTS:
            pair = getattr(self, name), getattr(other, name)
            amounts[name] = None if None in pair else sum(pair)
        for name in _COMMON:
            alike = getattr(self, name) == getattr(other, name)
            amounts[name] = getattr(self, name) if alike else None
        return replace(self, **amounts)


class LineTime(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a program on which the main thread of a CPU was, by samples of steps.

    `running` is the share of the step in which it ran outside of torch's operations, `waiting` that
    in which it slept or waited: for a socket, a lock, a process, a timer. Time in which others ran
    on its CPU is not of the step. `source` is the expression, `function` what it is in; `outermost`
    where no other function of the program called that one.
    """

    line: Line
    function: Line
    source: Line
    running: Fraction
    waiting: Fraction
    outermost: bool = False


class CollectiveKind(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Calls of one collective that are alike on a rank, by a number of that rank's own.

    `group` is backend and name of the process group, `line` that of the program which calls it,
    empty where torch does so by itself, as for buckets of gradients.
    """

    number: Count
    group: Line
    name: Line
    sizes: list[list[Count]]
    line: Line = ""


class CollectiveCall(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One call of a rank: `kind` by its number, `number` within its group, the same on all ranks.

    `at`: when it came, on the monotonic clock of its host. `took_s`: on a device, from the rank's
    arrival there to the end.
    """

    kind: Count
    number: Count
    at: Moment
    took_s: Seconds | None = None


class RankSpan(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the main thread of a rank did."""

    kind: RankActivity
    begun: Moment
    ended: Moment


class KernelLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel as it was launched: the blocks of its grid, and what each of them needs.

    `calls` and `seconds` are of a step.
    """

    name: Text
    calls: Amount
    seconds: Seconds
    blocks: PositiveCount
    threads: PositiveCount
    """Of a block."""
    registers: Count = 0
    """Of a thread."""
    shared_bytes: Count = 0
    """Of a block."""


class WindowFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording says of a step beside its parts: seconds and counts of one step, as
    recorded. Those of copies are by direction and kind of the host's memory, such as "host to
    device pageable".
    """

    step_s: Seconds = 0.0
    """Of the recording; longer than without the profiler."""
    kernels: Amount = 0.0
    idle_s: Seconds = 0.0
    """In which the device did nothing; longer than without the profiler."""
    synchronizations: Amount = 0.0
    """Calls in which the host waited for the device."""
    sync_s: Seconds = 0.0
    """In which the main thread was in such a call."""
    sync_idle_s: Seconds = 0.0
    """In which the device had nothing to do because the host waited for it: gaps with such a call,
    each less the median of those without one.
    """
    copies_s: dict[Name, Seconds] = {}
    exposed_s: dict[Name, Seconds] = {}
    """Of them, in which no kernel ran."""
    allocations: Amount = 0.0
    """Calls of cudaMalloc, cudaFree and their like."""
    allocation_s: Seconds = 0.0
    optimizer_s: Seconds = 0.0
    """In steps of optimizers: of a device from their first kernel to the last one."""
    optimizer_kernels: Amount = 0.0
    """Kernels that they launch; on a CPU the operations that they call."""
    optimizers: dict[Name, Amount] = {}
    """How often each class of optimizers steps; empty in files of earlier versions."""
    optimizer_computes: bool = False
    """Whether a backward runs inside of them: they call a closure."""
    parameters: Count | None = None
    """Of those optimizers; None where it is not known."""
    loads: Amount = 0.0
    """Batches that came from DataLoaders."""
    load_s: Seconds | None = None
    """The mean wait for one, without the longest of a step that has several; None of none."""
    workers: Count | None = None
    """Processes that load them; None where it is not known."""
    compilations: Amount = 0.0
    """Of torch.compile, in steps after the warm-up."""
    compile_s: Seconds = 0.0
    compiled_regions: Amount = 0.0
    """Calls of compiled code: one for each piece of a graph that is broken."""
    graph_breaks: Count | None = None
    """That torch.compile met; None where nothing was compiled."""
    launches: list[KernelLaunch] = []
    """The kernels that take longest."""


USEFUL, DATA, COPY, SYNC = "useful", "data", "copy", "sync"
"""Phases with a meaning; any other is its author's own."""
TRACE_PREFIX = "gpulab:"
"""Of the spans that the lab marks in a recording: phases, and the window that is recorded."""
UNMARKED = ""
"""The time outside every phase."""
WAITING = frozenset({DATA, COPY, SYNC})
CATEGORIES = (
    USEFUL,
    "other busy",
    "communication",
    "copies",
    "alloc",
    "data wait",
    "sync",
    "launch-bound",
    "other",
    "waiting",
    "not running",
    "preempted",
)
"""Every instant belongs to the first of these that it fits."""
BUSY = (USEFUL, "other busy", "communication", "copies")
"""What a device does: as long under the profiler as without it."""
_COMMUNICATES = re.compile(
    r"nccl|nvshmem|_on_stream_kernel|(one|two)_shot_all_reduce|multimem_", re.IGNORECASE
)
_ROUNDING, _ROUNDING_S = 1 + 1e-6, 1e-6


def communicates(kernel: str) -> bool:
    """Whether a kernel is one of NCCL's, of NVSHMEM's, or of torch's for symmetric memory."""
    return _COMMUNICATES.search(kernel) is not None


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
    within: dict[Name, Amount] = {}
    """Of a CPU, the share of the recorded operations that begin just after an instant of each
    category, and just before one: where the time that recording them takes falls, as far as it is
    outside of them, and inside.
    """

    def __post_init__(self) -> None:
        if USEFUL not in self.seconds or not {*self.seconds, *self.around, *self.within} <= set(
            CATEGORIES
        ):
            raise ValueError("a partition by other categories")
        most_s = self.window_s * _ROUNDING + _ROUNDING_S
        if not all(-_ROUNDING_S <= part_s <= most_s for part_s in self.seconds.values()):
            raise ValueError("a part that is larger than the whole")

    @property
    def shares(self) -> dict[str, float]:
        """Fractions of the window, which sum to 1; zeros where the window is empty."""
        window_s = self.window_s
        return {
            category: part_s / window_s if window_s else 0.0
            for category, part_s in self.seconds.items()
        }

    @property
    def goodput(self) -> float:
        """Useful seconds / seconds of the window."""
        return self.shares[USEFUL]


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate. `ratio` is its time over that of the chosen one; with an interval where both
    were in the final.
    """

    config: Line
    """Such as `block=128 warps=4`."""
    time_s: StepTime | None = None
    """The median of its own blocks, per step; None where it could not be measured."""
    blocks: Count = 0
    ratio: Amount | None = None
    low: Amount | None = None
    high: Amount | None = None
    reason: Line | None = None
    """Why it was left out: it did not compile, does not fit, or computes something else."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates, the chosen one first, then the finalists, then those that were eliminated, then
    what failed.
    """

    tried: Annotated[list[Tried], msgspec.Meta(min_length=1, max_length=CANDIDATES)]
    tied: Count = 0
    """How many of those after the first it cannot be told from."""
    rounds: Count = 0
    """Of the final."""
    seconds: Seconds = 0.0
    build_s: Seconds = 0.0
    """Of them for building, compiling and checking."""
    time_s: Seconds = 0.0
    """Of the rounds of the run that measured it: one that is given more measures again."""
    at: Name = ""
    """UTC, ISO 8601."""

    @property
    def finalists(self) -> list[Tried]:
        """Those with an interval, and the chosen one before them."""
        return [self.tried[0], *(tried for tried in self.tried[1:] if tried.low is not None)]

    @property
    def second(self) -> Tried | None:
        """The fastest of the other finalists: what its ratio is above 1 is the regret of taking
        it.
        """
        return min(self.finalists[1:], key=lambda tried: tried.ratio or 0.0, default=None)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A tuning, for whoever asks again: `key` is a digest of the device, versions, source,
    parameters, candidates.
    """

    key: Name
    tuning: Tuning
