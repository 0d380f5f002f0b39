"""Events of any profiler by the kinds that a trace of torch has, and timelines made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gpulab.core.limits import TRACE_EVENTS
from gpulab.traces.recording import Recording
from gpulab.traces.trace import read_any

KERNEL, COPY, SET = "kernel", "gpu_memcpy", "gpu_memset"
CALL, RANGE, OPERATION, FUNCTION = "cuda_runtime", "user_annotation", "cpu_op", "python_function"


class Record(NamedTuple):
    """One event; start and end in nanoseconds of any clock. `device` is None on the host, `thread`
    that of the host, or a stream; `process` 0 where it is not recorded.
    """

    kind: str
    name: str
    start: int
    end: int
    process: int
    thread: int
    device: int | None = None
    correlation: int | None = None


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
        raise ValueError("a recording without kernels, copies, calls and ranges")
    places = {(record.process, record.device) for record in kept if record.device is not None}
    if not places:
        note = "; ".join(filter(None, ("no kernel or copy of a device in it", note)))
        return [Recording(name, read_any(_raw(kept)), note)]
    found = []
    for process, device in sorted(places):
        own = [
            record
            for record in kept
            if record.device in (None, device) and process in (0, record.process)
        ]
        label = name if len(places) == 1 else f"{name} device {device} of process {process}"
        found.append(Recording(label, read_any(_raw(own)), note))
    return found


def _raw(records: list[Record]) -> list[dict[str, Any]]:
    """The events of a Chrome trace. Nanoseconds since the epoch need the difference first."""
    origin = min(record.start for record in records)
    return [
        {
            "ph": "X",
            "cat": record.kind,
            "name": record.name,
            "ts": (record.start - origin) / 1e3,
            "dur": (record.end - record.start) / 1e3,
            "pid": record.process if record.device is None else record.device,
            "tid": record.thread,
            "args": {"correlation": record.correlation},
        }
        for record in records
    ]
