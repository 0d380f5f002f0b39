"""From the recordings of a followed process to the event that every profile arrives as."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.files import read_regular
from gpulab.core.limits import TRACE_BYTES
from gpulab.features.goodput.analysis import call_counts, partition
from gpulab.features.goodput.events import Profiled
from gpulab.features.goodput.recorded_operations import operations
from gpulab.features.goodput.trace import Trace, read
from gpulab.features.program.events import WindowKind
from gpulab.features.program.files import FollowedProcess, RecordedSteps

if TYPE_CHECKING:
    from gpulab.features.goodput.events import Partition

_PLAIN, _SHAPES, _CALLERS = "plain", "shapes", "callers"


def to_profile(processes: list[FollowedProcess]) -> FollowedProcess | None:
    """The process whose recordings count: of those that have some, the lowest rank, then the one
    that recorded most steps.
    """
    recorded = [process for process in processes if _PLAIN in process.recordings]
    return min(
        recorded,
        key=lambda process: (process.rank, -process.recordings[_PLAIN].steps),
        default=None,
    )


def profiled(variant: str, process: FollowedProcess, trace: str | None) -> Profiled | None:
    """The profile of a process; None where it has no recording, or no plain steps beside it.

    `trace`: a path for the trace with most in it. ValueError, OSError: the recordings cannot be
    read.
    """
    first = process.recordings.get(_PLAIN)
    plain_s = [
        window.seconds / window.steps
        for window in process.windows
        if window.kind == WindowKind.PLAIN
    ]
    if first is None or not plain_s:
        return None
    step_s = median(plain_s)
    recording = _read(first)
    parts = _partition(recording, first)
    profile = Profiled(
        variant=variant,
        rank=process.rank,
        steps=first.steps,
        plain_s=step_s,
        profiled_s=first.seconds / first.steps,
        partition=parts,
        waited=_waited(first),
        operations=operations(recording),
        repeatable=True,
    )
    second, third = (process.recordings.get(name) for name in (_SHAPES, _CALLERS))
    if second is not None and second.steps == first.steps:
        again = _read(second)
        profile = replace(
            profile,
            repeatable=call_counts(recording) == call_counts(again),
            repeated=_partition(again, second),
            operations=operations(again, _read(third) if third is not None else None),
        )
    if trace is not None:
        kept = third or second or first
        Path(trace).write_bytes(read_regular(Path(kept.file), TRACE_BYTES))
        profile = replace(profile, trace=trace)
    return profile


def _read(recorded: RecordedSteps) -> Trace:
    return read(json.loads(read_regular(Path(recorded.file), TRACE_BYTES)))


def _partition(trace: Trace, recorded: RecordedSteps) -> Partition:
    """Partition a recording: off the CPU it waited, but for what others took by the scheduler."""
    off_cpu = {"": max(0.0, recorded.seconds - recorded.cpu_s)}
    return partition(trace, off_cpu, recorded.delay_s or 0.0)


def _waited(recorded: RecordedSteps) -> float | None:
    """The share of its time in which its thread slept or waited, where the scheduler says so."""
    if recorded.delay_s is None:
        return None
    waited_s = recorded.seconds - recorded.cpu_s - recorded.delay_s
    return max(0.0, waited_s / recorded.seconds)
