"""The bill of a recording of torch's profiler: each moment of it is booked once, to what the device
did, or where that was idle to what the host did meanwhile. Of what a device does at once kernels
come first, and then collectives: theirs and that of copies is the time that no kernel hides.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from gpulab.features.bill.result import BillRow
from gpulab.stats.time_spans import (
    Span,
    innermost,
    intersect,
    measure,
    subtract,
    uncovered,
    union,
)
from gpulab.traces.trace import REPEATED, Thread, Trace, TraceEvent

BUSY, COPIES, COLLECTIVES = "device busy", "device copies", "device in collectives"
IDLE, OUTSIDE, TORCH = "device idle", "outside of operations", "torch"
CALLS, ON_HOST = "calls of the host", "on the host"
_OF_TORCH = "cpu_op"
"""The kind of operations of torch; that of others is what the host does in them."""
_STEP, _LOADER = ("ProfilerStep#", "gpulab:step"), "DataLoader"
_COLLECTIVES = ("nccl", "rccl", "all_reduce", "allreduce", "AllReduce")
_PLACE = re.compile(r"^(.+\.py)\((\d+)\): (.+)$")
"""A function of Python in a recording with stacks: file, its first line, name."""


class TraceBill(msgspec.Struct, frozen=True, kw_only=True):
    """The bill of one recording; `busy_s` is what its device was busy, None without a device.

    `note`: what of the file could not be read.
    """

    schema: str = "gpulab.trace_bill/1"
    file: str
    wall_s: float
    busy_s: float | None
    rows: list[BillRow]
    steps: int = 0
    step_s: float | None = None
    """The median of those that torch's schedule or gpulab's own ranges of NVTX marked, or that were
    known by `step_mark`; one begins every `every_s`.
    """
    device: str = "the device"
    every_s: float | None = None
    step_mark: str = ""
    note: str = ""


def bill_of(file: str, trace: Trace, note: str) -> TraceBill:
    """Return the bill of a recording, from its first event to its last."""
    booked_s: dict[tuple[str, str], float] = defaultdict(float)
    threads = trace.operations or trace.calls
    marks = Counter(mark.thread for mark in trace.annotations)
    # a backward pass may call more than the program's own thread, which is the one that is marked
    host = max(threads, key=lambda each: (marks[each], len(threads[each])), default=trace.main)
    device = [event for event in trace.inside(trace.device) if event.end > event.start]
    busy = union(event.span for event in device)
    rest: list[Span] = subtract([trace.window], busy)
    booked: list[Span] = []
    for cause in (BUSY, COLLECTIVES, COPIES):
        kind = [event for event in device if _of_device(event.kind, event.name) == cause]
        for start, end, index in innermost([event.span for event in kind]):
            booked_s[cause, kind[index].name] += uncovered(booked, start, end)
        booked = union([*booked, *(event.span for event in kind)])
    if busy:
        for cause, of, spans in _host_states(trace, host):
            booked_s[f"{IDLE}: {cause}", of] += measure(intersect(rest, spans))
            rest = subtract(rest, spans)
        for name, seconds in _outside(trace, host, rest).items():
            booked_s[f"{IDLE}: {_elsewhere(trace)}", name] += seconds
    else:
        booked_s.update(_of_host(trace, host, rest))
    marked = [event for event in trace.annotations if event.name.startswith(_STEP)]
    steps = sorted(trace.steps or marked, key=lambda step: step.start)
    marked_s = median(step.end - step.start for step in steps) if steps else None
    every_s = median(b.start - a.start for a, b in pairwise(steps)) if steps[1:] else None
    # the calls of a step that nobody marked end before its work does
    repeated = bool(trace.steps) and trace.steps[0].kind.startswith(REPEATED)
    return TraceBill(
        file=file,
        wall_s=trace.window_s,
        busy_s=measure(busy) if busy else None,
        rows=_rows(booked_s),
        steps=len(steps),
        step_s=every_s if repeated else marked_s,
        device=trace.device_name,
        every_s=every_s,
        step_mark=trace.steps[0].kind if trace.steps else "",
        note=note,
    )


def bill_of_summary(file: str, sums: Mapping[tuple[str, str], float], note: str) -> TraceBill:
    """Return the bill of sums by cause and name, which have no timeline."""
    wall_s = sum(sums.values())
    return TraceBill(file=file, wall_s=wall_s, busy_s=None, rows=_rows(sums), note=note)


def _rows(found: Mapping[tuple[str, str], float]) -> list[BillRow]:
    rows = [
        BillRow(cause=cause, of=of, seconds=taken)
        for (cause, of), taken in found.items()
        if taken > 0
    ]
    return sorted(rows, key=lambda row: -row.seconds)


def _elsewhere(trace: Trace) -> str:
    """Return what is known of a host that neither calls nor starts anything."""
    if trace.operations:
        return "in Python, or not recorded"
    return "outside of the runtime" if trace.calls else "the host is not recorded"


def _of_device(kind: str, name: str) -> str:
    if any(part in name for part in _COLLECTIVES):
        return COLLECTIVES
    return BUSY if kind == "kernel" else COPIES


def _host_states(trace: Trace, host: Thread) -> Iterator[tuple[str, str, list[Span]]]:
    """Yield what the host does, the most certain first, the name of the call, and when."""
    yield "waiting for data", "", _loading(trace)
    for name, spans in sorted(_calls(trace).items()):
        yield _of_call(name), name, union(spans)
    # a backward pass starts its operations in a thread of its own
    every = [event for of_thread in trace.operations.values() for event in of_thread]
    torch = union(event.span for event in every if event.kind == _OF_TORCH)
    yield "starting operations", "", torch
    others = [event for event in trace.operations.get(host, []) if event.kind != _OF_TORCH]
    for (cause, name), spans in sorted(_own(others).items()):
        yield cause, name, spans


def _own(operations: Sequence[TraceEvent]) -> dict[tuple[str, str], list[Span]]:
    """Return when the host is in each operation itself, by its kind and name."""
    found: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for start, end, index in innermost([event.span for event in operations]):
        found[operations[index].kind, operations[index].name].append((start, end))
    return found


def _loading(trace: Trace) -> list[Span]:
    return union(event.span for event in trace.annotations if _LOADER in event.name)


def _calls(trace: Trace) -> dict[str, list[Span]]:
    """Return when each function of the runtime or driver runs; each moment is one's."""
    calls = [call for of_thread in trace.calls.values() for call in of_thread]
    found: dict[str, list[Span]] = defaultdict(list)
    for start, end, index in innermost([call.span for call in calls]):
        found[calls[index].name].append((start, end))
    return found


def _of_call(name: str) -> str:
    if "Synchronize" in name:
        return "the host waits for the device"
    if "Memcpy" in name and "Async" not in name:
        return "the host copies"
    return "launching" if "Launch" in name else "in the runtime"


def _of_host(trace: Trace, host: Thread, window: list[Span]) -> dict[tuple[str, str], float]:
    """Return the seconds of each operation's own of the host's main thread, or of its calls."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    threads = trace.operations or trace.calls
    operations = [event for event in trace.inside(threads.get(host, []))]
    for (kind, name), spans in _own(operations).items():
        found[_cause(trace, kind), name] += measure(spans)
    loading = _loading(trace)
    rest = subtract(window, union(event.span for event in operations))
    found["waiting for data", ""] = measure(intersect(rest, loading))
    for name, seconds in _outside(trace, host, subtract(rest, loading)).items():
        found[OUTSIDE if threads else ON_HOST, name] += seconds
    return found


def _cause(trace: Trace, kind: str) -> str:
    if kind == _OF_TORCH:
        return TORCH
    return kind if trace.operations else CALLS


def _outside(trace: Trace, host: Thread, rest: list[Span]) -> dict[str, float]:
    """Return the seconds outside of operations by the innermost function of Python, or range that
    the program named; of what is in none, without a name.
    """
    marks = [*trace.functions, *trace.annotations]
    marks = [mark for mark in marks if mark.thread == host and not mark.name.startswith(_STEP)]
    spans: dict[str, list[Span]] = defaultdict(list)
    for start, end, index in innermost([mark.span for mark in marks]):
        spans[_PLACE.sub(r"\1:\2 \3", marks[index].name)].append((start, end))
    found = {name: measure(intersect(rest, each)) for name, each in spans.items()}
    found[""] = measure(rest) - sum(found.values())
    return found
