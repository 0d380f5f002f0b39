"""Events of any profiler by the kinds that a trace of torch has, and timelines made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpulab.core.limits import TRACE_EVENTS
from gpulab.traces.recording import Recording
from gpulab.traces.trace import Trace, read_any

KERNEL, COPY, CALL, RANGE = "kernel", "gpu_memcpy", "cuda_runtime", "user_annotation"


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
    where there is no device. ValueError where there are no events, or more than the limit.
    """
    kept = []
    for record in records:
        if isinstance(record.start, int) and isinstance(record.end, int):
            kept.append(record)
        if len(kept) > TRACE_EVENTS:
            raise ValueError(f"more than {TRACE_EVENTS} events: record a shorter time")
    if not kept:
        raise ValueError(f"no kernels, copies, calls or ranges in it{note and '; '}{note}")
    places = {(record.process, record.device) for record in kept if record.device is not None}
    if not places:
        return [Recording(name, _trace(kept), note or "no kernel or copy of a device in it")]
    found = []
    for process, device in sorted(places):
        own = [
            record
            for record in kept
            if record.device in (None, device) and process in (0, record.process)
        ]
        label = name if len(places) == 1 else f"{name} device {device} of process {process}"
        found.append(Recording(label, _trace(own), note))
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
