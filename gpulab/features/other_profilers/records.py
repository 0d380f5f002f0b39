"""Events of any profiler by the kinds that a trace of torch has, and timelines made of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from statistics import median_low
from typing import NamedTuple

from gpulab.core.limits import TRACE_EVENTS
from gpulab.traces.recording import Recording
from gpulab.traces.trace import Trace, read_any

KERNEL, COPY, CALL, RANGE = "kernel", "gpu_memcpy", "cuda_runtime", "user_annotation"
_YEAR = 365 * 86_400 * 10**9
"""Nanoseconds. An end that was never written may be the largest number that there is."""


class Record(NamedTuple):
    """One event of a kind of torch's; start and end in nanoseconds of any clock. `device` is None
    on the host, `thread` that of the host, or a stream; `process` 0 where it is not recorded.
    """

    kind: str
    name: str
    start: int
    end: int
    process: int
    thread: int
    device: int | None = None


def recordings(name: str, records: Iterable[Record], note: str = "") -> list[Recording]:
    """Return a timeline for each device of each process, with the host of that process; one of all
    where there is no device, or launches and no kernel of any: which time of the device is idle is
    not known then. ValueError where there are no events, or more than the limit.
    """
    timed = (each for each in records if isinstance(each.start, int) and isinstance(each.end, int))
    kept = list(islice(timed, TRACE_EVENTS + 1))
    if len(kept) > TRACE_EVENTS:
        raise ValueError(f"more than {TRACE_EVENTS} events: record a shorter time")
    middle = median_low([record.start for record in kept] or [0])
    possible = [each for each in kept if middle - _YEAR < each.start <= each.end < middle + _YEAR]
    notes = [note] if note else []
    if len(possible) < len(kept):
        notes.append(f"events with times that cannot be, left out: {len(kept) - len(possible):,}")
    if not possible:
        raise ValueError("; ".join(["no kernels, copies, calls or ranges in it", *notes]))
    lacking = "no kernel or copy of a device in it"
    calls = [each.name for each in possible if each.kind == CALL]
    launches = sum("Launch" in call and "HostFunc" not in call for call in calls)
    if launches and all(each.kind != KERNEL for each in possible):
        possible = [each for each in possible if each.device is None]
        lacking = (
            f"launches without a kernel in the file: {launches:,} (not exported, or unreadable)"
        )
    places = {(record.process, record.device) for record in possible if record.device is not None}
    if not places:
        return [Recording(name, _trace(possible), "; ".join([lacking, *notes]))]
    found = []
    for process, device in sorted(places):
        own = [
            record
            for record in possible
            if record.device in (None, device) and process in (0, record.process)
        ]
        label = name if len(places) == 1 else f"{name} device {device} of process {process}"
        found.append(Recording(label, _trace(own), "; ".join(notes)))
    return found


def _trace(records: list[Record]) -> Trace:
    origin = min(record.start for record in records)  # nanoseconds since 1970 are no floats
    return read_any(
        {
            "ph": "X",
            "cat": record.kind,
            "name": record.name,
            "ts": (record.start - origin) / 1e3,
            "dur": (record.end - record.start) / 1e3,
            "pid": record.process if record.device is None else record.device,
            "tid": record.thread,
        }
        for record in records
    )
