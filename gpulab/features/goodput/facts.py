"""What a recording says of a step beside where its time goes: waits of the host, copies that
nothing hides, memory that the driver allocates, the optimizer, batches, the shape of launches.

Gaps of a device are between the end of all that it does and the next that it begins. A gap in which
a call that waits for the device ends was made by that wait: the host had nothing queued. What it
costs is what it is longer than gaps without one, since a host that is slow has gaps anyway.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from gpulab.core.limits import NAME_LENGTH
from gpulab.core.payloads import DEVICE_TO_HOST, HOST_TO_DEVICE
from gpulab.features.goodput.analysis import ALLOC_CALL, LOADER, SYNC_CALL
from gpulab.features.goodput.events import KernelLaunch, WindowFacts
from gpulab.features.goodput.trace import Trace, TraceEvent
from gpulab.stats.time_spans import Span, clip, measure, subtract, union

OPTIMIZER = "Optimizer.step#"
_REGION = "Torch-Compiled Region"
_HOST_MEMORY = re.compile(r"\b(Pageable|Pinned)\b")
_SEVERAL = 2
_COUNTS = frozenset({"parameters", "workers", "graph_breaks"})


def facts(trace: Trace, steps: int, **known: Any) -> WindowFacts:
    """Return the facts of a step; `known` are fields that no recording has, as numbers."""
    known = {
        name: round(value) if name in _COUNTS and value is not None else value
        for name, value in known.items()
    }
    device = list(trace.inside(trace.device))
    kernels = [event for event in device if event.kind == "kernel"]
    calls = sorted(_calls(trace), key=lambda event: event.start)
    busy = clip(union(event.span for event in device), *trace.window)
    last_s = busy[-1][1] if busy else 0.0
    waits = [call for call in calls if SYNC_CALL.match(call.name) and call.end < last_s]
    allocations = [call for call in calls if ALLOC_CALL.match(call.name)]
    copies, exposed = _copies(device, kernels, trace.window)
    notes = list(trace.inside(trace.annotations))
    updates = [note for note in notes if note.name.startswith(OPTIMIZER)]
    optimizer_s, optimizer_kernels = _optimizer(trace, updates, calls)
    loads = [note for note in notes if note.name.startswith(LOADER)]
    recorded = [event for events in trace.operations.values() for event in trace.inside(events)]
    regions = [event for event in (*notes, *recorded) if event.name.startswith(_REGION)]
    idle_s = max(0.0, trace.window_s - measure(busy)) if busy else 0.0
    return WindowFacts(
        step_s=trace.window_s / steps,
        kernels=len(kernels) / steps,
        idle_s=idle_s / steps,
        synchronizations=len(waits) / steps,
        sync_s=measure(union(call.span for call in waits if call.thread == trace.main)) / steps,
        sync_idle_s=_idle_after(waits, busy) / steps,
        copies_s={kind: seconds / steps for kind, seconds in copies.items()},
        exposed_s={kind: seconds / steps for kind, seconds in exposed.items()},
        allocations=len(allocations) / steps,
        allocation_s=measure(union(call.span for call in allocations)) / steps,
        optimizer_s=optimizer_s / steps,
        optimizer_kernels=optimizer_kernels / steps,
        optimizers=_optimizers(updates, steps),
        optimizer_computes=_goes_backward(trace, updates),
        loads=len(loads) / steps,
        load_s=_usual_wait(loads, steps),
        compiled_regions=len(regions) / steps,
        launches=_launches(kernels, steps),
        **known,
    )


def _usual_wait(loads: list[TraceEvent], steps: int) -> float | None:
    """The mean wait for a batch; where a step has several, without its longest, which is that for
    the first of an epoch.
    """
    waits = sorted(note.end - note.start for note in loads)
    if len(waits) >= _SEVERAL * steps:
        waits = waits[:-steps]
    return fmean(waits) if waits else None


def _calls(trace: Trace) -> Iterable[TraceEvent]:
    return (call for calls in trace.calls.values() for call in trace.inside(calls))


def _idle_after(waits: list[TraceEvent], busy: list[Span]) -> float:
    """Seconds of the device's gaps in which a wait ends, beyond the median of the others."""
    ends = sorted(call.end for call in waits)
    with_wait, others = [], []
    for (_, start), (end, _) in pairwise(busy):
        place = bisect_left(ends, start)
        if place < len(ends) and ends[place] <= end:
            with_wait.append(end - start)
        else:
            others.append(end - start)
    usual_s = median(others) if others else 0.0
    return sum(max(0.0, gap_s - usual_s) for gap_s in with_wait)


def _copies(
    device: list[TraceEvent], kernels: list[TraceEvent], window: Span
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of copies by direction and memory of the host, and those with no kernel beside."""
    by_kind: dict[str, list[Span]] = defaultdict(list)
    for event in device:
        if kind := _kind_of_copy(event):
            by_kind[kind].append(event.span)
    computing = union(event.span for event in kernels)
    copies, exposed = {}, {}
    for kind, spans in by_kind.items():
        copied = clip(union(spans), *window)
        copies[kind] = measure(copied)
        exposed[kind] = measure(subtract(copied, computing))
    return copies, exposed


def _kind_of_copy(event: TraceEvent) -> str | None:
    memory = _HOST_MEMORY.search(event.name)
    if event.kind != "gpu_memcpy" or memory is None:
        return None
    direction = HOST_TO_DEVICE if "HtoD" in event.name else DEVICE_TO_HOST
    return f"{direction} {memory[1].lower()}"


def _optimizers(updates: list[TraceEvent], steps: int) -> dict[str, float]:
    names = [note.name.removeprefix(OPTIMIZER).removesuffix(".step") for note in updates]
    counts = Counter(name[:NAME_LENGTH] for name in names)
    return {name: count / steps for name, count in counts.items()}


def _goes_backward(trace: Trace, updates: list[TraceEvent]) -> bool:
    """Return whether an optimizer calls a closure: then most of its time is the model's."""
    starts = sorted(
        event.start
        for events in trace.operations.values()
        for event in events
        if event.name.startswith("autograd::engine::evaluate_function")
    )
    return any(bisect_left(starts, note.start) < bisect_left(starts, note.end) for note in updates)


def _optimizer(
    trace: Trace, updates: list[TraceEvent], calls: list[TraceEvent]
) -> tuple[float, int]:
    """Seconds in steps of optimizers, and how many kernels they launch, or operations call."""
    spans = [note.span for note in updates]
    if not trace.on_device:
        work = trace.operations.get(trace.main, [])
        # a hook that runs at its end is no part of it, and a window may end within it
        worked = [_worked(work, span) for span in clip(union(spans), *trace.window)]
        return measure(union(worked)), sum(_leaves(work, span) for span in worked)
    kernels = {event.correlation: event for event in trace.device if event.correlation is not None}
    seconds = 0.0
    count = 0
    starts = [call.start for call in calls]
    for start, end in spans:
        inside = calls[bisect_left(starts, start) : bisect_left(starts, end)]
        launched = [kernels[call.correlation] for call in inside if call.correlation in kernels]
        if launched:
            seconds += max(each.end for each in launched) - min(each.start for each in launched)
            count += len(launched)
    return seconds, count


def _worked(work: list[TraceEvent], span: Span) -> Span:
    """From the first to the last operation in a span; its beginning where there is none."""
    inside = [event.span for event in work if span[0] <= event.start < span[1]]
    first = min((start for start, _ in inside), default=span[0])
    return first, max((min(end, span[1]) for _, end in inside), default=first)


def _leaves(work: list[TraceEvent], span: Span) -> int:
    """Operations in a span that call no other."""
    inside = sorted(event.span for event in work if span[0] <= event.start < span[1])
    following = [*(start for start, _ in inside[1:]), span[1]]
    return sum(begins >= end for (_, end), begins in zip(inside, following, strict=False))


def _launches(kernels: list[TraceEvent], steps: int) -> list[KernelLaunch]:
    """The kernels that take longest, each by its grid."""
    groups: dict[tuple[str, int, int], list[TraceEvent]] = defaultdict(list)
    for event in kernels:
        blocks, threads = (_product(event.arguments.get(name)) for name in ("grid", "block"))
        if blocks and threads:
            groups[event.name, blocks, threads].append(event)
    launches = []
    for (name, blocks, threads), events in groups.items():
        arguments = events[0].arguments
        launches.append(
            KernelLaunch(
                name=name,
                calls=len(events) / steps,
                seconds=sum(event.end - event.start for event in events) / steps,
                blocks=blocks,
                threads=threads,
                registers=_count(arguments.get("registers per thread")),
                shared_bytes=_count(arguments.get("shared memory")),
            )
        )
    return sorted(launches, key=lambda launch: -launch.seconds)[:8]


def _product(sizes: object) -> int:
    """Return the product of three numbers of a launch; 0 where they are none."""
    if not isinstance(sizes, list) or not all(isinstance(size, int) for size in sizes):
        return 0
    product = 1
    for size in sizes:
        product *= max(0, size)
    return product


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
