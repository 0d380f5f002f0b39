"""The heaviest operations of a recording, each with the shapes, types and values that it was called
with.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from gpulab.core.limits import LARGEST_INTEGER
from gpulab.traces.trace import INPUTS, Trace, TraceEvent
from gpulab.traces.tree import Node, forest

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


def recorded_calls(trace: Trace) -> RecordedCalls:
    """Every operation of the recording by name and inputs, in the order of its own time."""
    on_device = trace.on_device
    woods = forest(trace)
    unowned_s = sum(event.end - event.start for event in woods.unowned)
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in woods.nodes:
        groups[node.name, _inputs_key(node.event)].append(node)
    calls = [_call(group, on_device) for group in groups.values()]
    whole_s = sum(call.self_s for call in calls) + unowned_s
    if whole_s:
        calls = [replace(call, share=call.self_s / whole_s) for call in calls]
    calls.sort(key=lambda call: (-call.self_s, call.name))
    return RecordedCalls(
        calls=tuple(calls),
        on_device=on_device,
        steps=_steps(trace),
        elsewhere=unowned_s / whole_s if whole_s else 0.0,
    )


def _inputs_key(event: TraceEvent) -> str:
    return json.dumps([event.arguments.get(name) for name in INPUTS])


def _call(nodes: Sequence[Node], on_device: bool) -> RecordedCall:
    if on_device:
        totals = [node.device_total_s for node in nodes]
        self_s = sum(node.device_s for node in nodes)
    else:
        totals = [node.total_s for node in nodes]
        self_s = sum(node.self_s for node in nodes)
    callers = Counter(node.parent.name for node in nodes if node.parent)
    return RecordedCall(
        name=nodes[0].name,
        inputs=_inputs(nodes[0].event.arguments),
        calls=len(nodes),
        self_s=self_s,
        share=0.0,
        median_s=median(totals),
        fastest_s=min(totals),
        slowest_s=max(totals),
        callers=tuple(name for name, _ in callers.most_common()),
        copies=any(map(_copies, (event for node in nodes for event in node.kernels))),
    )


def _copies(event: TraceEvent) -> bool:
    """Return whether it is a copy between host and device."""
    return event.kind == "gpu_memcpy" and ("HtoD" in event.name or "DtoH" in event.name)


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
    are_sizes = all(type(size) is int and 0 <= size <= LARGEST_INTEGER for size in value)
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
