"""What several features and the core share: names of roofs and of phases, and the plain data of
kernels, of collectives, and of what was tuned.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from gpulab.core.limits import CANDIDATES
from gpulab.core.values import (
    Amount,
    Count,
    Fraction,
    Line,
    Name,
    PositiveCount,
    Seconds,
    StepTime,
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


class KernelText(msgspec.Struct, frozen=True):
    """The source of a kernel, and how it is launched: `name` in the source `code`, which begins at
    `line` of its file.

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

    `instructions` counts those of the machine code by class (`load_128`, `fma`, `tensor`, ...),
    each once however often it runs; none where there is no disassembler.
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


GROUP = "Process Group Ranks"
"""Of a collective's kernel in a recording: the ranks that take part."""
REST = "..."
"""The name of the row that sums the rest of a table."""


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


def communicates(kernel: str) -> bool:
    """Return whether a kernel is NCCL's, NVSHMEM's, or torch's for symmetric memory."""
    return _COMMUNICATES.search(kernel) is not None


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
