"""The heaviest operations of a recording, each with the shapes, types and values that it was called
with.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gpulab.core.limits import LARGEST_INTEGER, TENSOR_DIMS
from gpulab.features.from_trace.stream import INPUTS
from gpulab.features.goodput.trace import Trace, TraceEvent

_STEPS = ("ProfilerStep#", "Optimizer.step#")


@dataclass(frozen=True)
class RecordedInput:
    """One argument as the profiler writes it.

    `type` is that of a tensor's elements in C++ ("float"), or Scalar, ScalarList, TensorList; empty
    where the argument was None or of a kind that is not recorded. `value` is the text of a scalar,
    else empty.
    """

    type: str
    dims: Any
    strides: Any
    value: str


@dataclass(frozen=True)
class RecordedCall:
    """All calls of one operation with the same inputs. `inputs` is None where no shapes were
    recorded.

    `self_s` is theirs together without the operations that they call; a call's time includes those.
    Both are the device's in a recording of one, else the host's. `callers` are the operations that
    called it.
    """

    name: str
    inputs: tuple[RecordedInput, ...] | None
    calls: int
    self_s: float
    share: float
    median_s: float
    fastest_s: float
    slowest_s: float
    callers: tuple[str, ...]
    copies: bool
    """Between host and device."""


@dataclass(frozen=True)
class RecordedCalls:
    """The heaviest first. `steps` is None where the recording marks none; `elsewhere` is the share
    of a device's time that no operation launched.
    """

    calls: tuple[RecordedCall, ...]
    on_device: bool
    steps: int | None
    elsewhere: float


@dataclass(slots=True)
class _Node:
    event: TraceEvent
    parent: _Node | None
    self_s: float
    total_s: float
    copies: bool = False


def recorded_calls(trace: Trace) -> RecordedCalls:
    """Every operation of the recording by name and inputs, in the order of its own time."""
    on_device = trace.on_device
    threads = {
        thread: _tree(list(trace.inside(events)), on_device)
        for thread, events in trace.operations.items()
    }
    nodes = [node for tree in threads.values() for node in tree]
    unowned_s = _launch(trace, threads) if on_device else 0.0
    whole_s = sum(node.self_s for node in nodes) + unowned_s
    groups: dict[tuple[str, str], list[_Node]] = defaultdict(list)
    for node in nodes:
        groups[node.event.name, _inputs_key(node.event)].append(node)
    calls = [_call(group, whole_s) for group in groups.values()]
    calls.sort(key=lambda call: (-call.self_s, call.name))
    return RecordedCalls(
        calls=tuple(calls),
        on_device=on_device,
        steps=_steps(trace),
        elsewhere=unowned_s / whole_s if whole_s else 0.0,
    )


def _tree(events: Sequence[TraceEvent], on_device: bool) -> list[_Node]:
    """The operations of a thread, outer ones before those within them; on a device their times are
    still 0.
    """
    nodes: list[_Node] = []
    enclosing: list[_Node] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        while enclosing and enclosing[-1].event.end <= event.start:
            enclosing.pop()
        seconds = 0.0 if on_device else event.end - event.start
        node = _Node(event, enclosing[-1] if enclosing else None, seconds, seconds)
        if node.parent:
            node.parent.self_s = max(0.0, node.parent.self_s - seconds)
        nodes.append(node)
        enclosing.append(node)
    return nodes


def _launch(trace: Trace, threads: dict[Any, list[_Node]]) -> float:
    """Give each operation the device's time that it launched; the seconds that none did."""
    launches = {
        call.correlation: (thread, call.start)
        for thread, calls in trace.calls.items()
        for call in calls
        if call.correlation is not None
    }
    device_events: dict[Any, list[tuple[float, TraceEvent]]] = defaultdict(list)
    unowned_s = 0.0
    for event in trace.inside(trace.device):
        launch = launches.get(event.correlation) if event.correlation is not None else None
        if launch and launch[0] in threads:
            device_events[launch[0]].append((launch[1], event))
        else:
            unowned_s += event.end - event.start
    for thread, launched in device_events.items():
        nodes = threads[thread]
        for node, event in _innermost(nodes, sorted(launched, key=lambda pair: pair[0])):
            seconds = event.end - event.start
            if node is None:
                unowned_s += seconds
                continue
            node.self_s += seconds
            node.total_s += seconds
            node.copies |= event.kind == "gpu_memcpy" and (
                "HtoD" in event.name or "DtoH" in event.name
            )
        for node in reversed(nodes):  # those within an operation come after it
            if node.parent:
                node.parent.total_s += node.total_s
    return unowned_s


def _innermost(
    nodes: Sequence[_Node], launched: Sequence[tuple[float, TraceEvent]]
) -> Iterator[tuple[_Node | None, TraceEvent]]:
    """The innermost operation at the instant of each launch; both are in the order of time."""
    enclosing: list[_Node] = []
    index = 0
    for instant, event in launched:
        while index < len(nodes) and nodes[index].event.start <= instant:
            while enclosing and enclosing[-1].event.end <= nodes[index].event.start:
                enclosing.pop()
            enclosing.append(nodes[index])
            index += 1
        while enclosing and enclosing[-1].event.end < instant:
            enclosing.pop()
        yield enclosing[-1] if enclosing else None, event


def _inputs_key(event: TraceEvent) -> str:
    return json.dumps([event.arguments.get(name) for name in INPUTS])


def _call(nodes: Sequence[_Node], whole_s: float) -> RecordedCall:
    totals = [node.total_s for node in nodes]
    self_s = sum(node.self_s for node in nodes)
    callers = Counter(node.parent.event.name if node.parent else "" for node in nodes)
    return RecordedCall(
        name=nodes[0].event.name,
        inputs=_inputs(nodes[0].event.arguments),
        calls=len(nodes),
        self_s=self_s,
        share=self_s / whole_s if whole_s else 0.0,
        median_s=median(totals),
        fastest_s=min(totals),
        slowest_s=max(totals),
        callers=tuple(name for name, _ in callers.most_common() if name),
        copies=any(node.copies for node in nodes),
    )


def _inputs(arguments: dict[str, Any]) -> tuple[RecordedInput, ...] | None:
    dims = arguments.get("Input Dims")
    types = arguments.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list) or len(dims) != len(types):
        return None
    strides = arguments.get("Input Strides")
    values = arguments.get("Concrete Inputs")
    return tuple(
        RecordedInput(
            str(kind), _sizes(dim), _sizes(_item(strides, index)), str(_item(values, index) or "")
        )
        for index, (kind, dim) in enumerate(zip(types, dims, strict=True))
    )


def _sizes(value: Any, depth: int = 1) -> Any:
    """The sizes or strides of a tensor, or of each of a list; None where they are no such."""
    if not isinstance(value, list):
        return None
    if depth and value and all(isinstance(entry, list) for entry in value):
        rows = [_sizes(entry, depth - 1) for entry in value]
        return None if None in rows else rows
    are_sizes = len(value) <= TENSOR_DIMS and all(
        type(size) is int and 0 <= size <= LARGEST_INTEGER for size in value
    )
    return value if are_sizes else None


def _item(values: Any, index: int) -> Any:
    return values[index] if isinstance(values, list) and index < len(values) else None


def _steps(trace: Trace) -> int | None:
    """Steps of the recording: as its schedule marks them, else those of its optimizer."""
    events = [
        *trace.annotations,
        *(event for events in trace.operations.values() for event in events),
    ]
    for mark in _STEPS:
        names = [event.name for event in trace.inside(events) if event.name.startswith(mark)]
        if names:
            return len(names) // (1 if mark == _STEPS[0] else len(set(names)))
    return None
