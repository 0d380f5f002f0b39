"""From the recordings of a followed process to the event that every profile arrives as."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.events import Event
from gpulab.core.files import read_regular
from gpulab.core.limits import TRACE_BYTES
from gpulab.features import needed, present
from gpulab.features.goodput.analysis import call_counts, partition
from gpulab.features.goodput.events import Profiled
from gpulab.features.goodput.recorded_operations import operations
from gpulab.features.program.events import WindowKind
from gpulab.features.program.files import FollowedProcess, RecordedSteps
from gpulab.stats.time_spans import Span, innermost, intersect, measure, subtract, union
from gpulab.traces.trace import CALLS, Trace, read
from gpulab.traces.tree import Node, forest

if TYPE_CHECKING:
    from gpulab.features.goodput.events import Partition

_PLAIN, _SHAPES, _CALLERS = "plain", "shapes", "callers"
_JAX = "jax"
STARTING = "starting operations"
"""What the host does in an operation outside of a call of the runtime, as the bill says it."""


def to_profile(processes: list[FollowedProcess]) -> FollowedProcess | None:
    """The process whose recordings count: of those that have some, the lowest rank, then the one
    that recorded most steps.
    """
    recorded = [(first, process) for process in processes if (first := _first(process))]
    found = min(recorded, key=lambda pair: (pair[1].rank, -pair[0].steps), default=None)
    return found[1] if found else None


def _first(process: FollowedProcess) -> RecordedSteps | None:
    return process.recordings.get(_PLAIN) or process.recordings.get(_JAX)


def profiled(variant: str, process: FollowedProcess, trace: str | None) -> Iterator[Event]:
    """Yield the profile of a process, and the bill of its device; nothing where it has no
    recording, or no plain steps beside it.

    `trace`: a path for the trace with most in it. ValueError, OSError: the recordings cannot be
    read.
    """
    first = _first(process)
    plain_s = [
        window.seconds / window.steps
        for window in process.windows
        if window.kind == WindowKind.PLAIN
    ]
    if first is None or not plain_s:
        return
    # recorded steps are longer than others of their kind: shorter ones are of another kind
    step_s = min(median(plain_s), first.seconds / first.steps)
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
    with_callers = _read(third) if third is not None else None
    if second is not None and second.steps == first.steps:
        again = _read(second)
        profile = replace(
            profile,
            repeatable=call_counts(recording) == call_counts(again),
            repeated=_partition(again, second),
            operations=operations(again, with_callers),
        )
    if trace is not None:
        kept = third or second or first
        Path(trace).write_bytes(read_regular(Path(kept.file), TRACE_BYTES))
        profile = replace(profile, trace=trace)
    yield profile
    device = present("bill.device")
    if device and recording.on_device:
        origins = _origins(recording)
        if with_callers is not None:
            origins |= _origins(with_callers)
        yield from filter(None, [device.booked(variant, recording, first.steps, origins)])


def _origins(trace: Trace) -> dict[str, dict[tuple[str, str], float]]:
    """Return, of kernels by name, the seconds of each operation and line that launched them; of
    calls of the runtime, and of starting operations, those in which the device was idle.
    """
    threads = {*trace.operations, *trace.calls}
    host = {
        thread: [*trace.operations.get(thread, ()), *trace.calls.get(thread, ())]
        for thread in threads
    }
    woods = forest(dataclasses.replace(trace, operations=host))
    idle = subtract([trace.window], union(event.span for event in trace.device))
    found: dict[str, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    spans: dict[tuple[str, str, str], list[Span]] = defaultdict(list)
    pieces = innermost([node.event.span for node in woods.nodes])
    for start, end, index in pieces:
        node = woods.nodes[index]
        name, operation = _call_and_operation(node)
        place = name or STARTING, operation if name else "", node.caller.line or ""
        spans[place].append((start, end))
    for (name, operation, line), each in spans.items():
        found[name][operation, line] += measure(intersect(idle, each))
    for node in woods.nodes:
        for kernel in node.kernels:
            _, operation = _call_and_operation(node)
            found[kernel.name][operation, node.caller.line or ""] += kernel.end - kernel.start
    return found


def _call_and_operation(node: Node) -> tuple[str, str]:
    if node.event.kind not in CALLS:
        return "", node.name
    outer = (each.name for each in node.ancestors if each.event.kind not in CALLS)
    return node.name, next(outer, "")


def _read(recorded: RecordedSteps) -> Trace:
    document = json.loads(read_regular(Path(recorded.file), TRACE_BYTES))
    if recorded.recording == _JAX:
        trace, _ = needed("jax.reading").read(document["traceEvents"])
        return trace  # type: ignore[no-any-return]
    return read(document)


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
