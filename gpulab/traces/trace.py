"""A recording of torch.profiler, read from its Chrome trace.

Times are in seconds from the start of the window, so that a nanosecond survives a clock that counts
from boot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeGuard

from gpulab.core.payloads import TRACE_PREFIX
from gpulab.stats.time_spans import Span

WINDOW = f"{TRACE_PREFIX}window"
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
CALLS = frozenset({"cuda_runtime", "cuda_driver"})
_ANNOTATIONS = frozenset({"user_annotation", "cpu_op"})
"""The lab's phases are of the second kind: the profiler takes 100x for the first."""
CALLER = f"{TRACE_PREFIX}at "
"""Of spans that say which line of the program, in which module, called what is within them."""
REPEATED = "repetitions of "
"""So begins the mark of steps that were found by their calls alone."""
_MEMORY = "[memory]"
RELEVANT = DEVICE | CALLS | _ANNOTATIONS
_FUNCTION = "python_function"
_NOT_OWN = ("<", "torch/", "nn.Module: ")
"""With these begin names of functions of Python that say nothing of the program."""
INPUTS = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
"""What a recording with shapes has of each operation."""
DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long int": "int64",
    "long": "int64",
    "__int64": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
}
"""Torch's names of types, by those that the profiler writes."""
_MOST_US = 1e18

Thread = tuple[int | str, int | str]
"""Process and thread; of a device event, device and stream."""


class TraceEvent(NamedTuple):
    """One event: its category in the trace, and what ties it to a launch.

    A device event has the `correlation` of the runtime or driver call that launched it; None where
    there is none.
    """

    kind: str
    name: str
    start: float
    end: float
    thread: Thread
    correlation: int | None
    arguments: dict[str, Any]

    @property
    def span(self) -> Span:
        return self.start, self.end


class Allocation(NamedTuple):
    """Bytes that were allocated, or freed where they are negative."""

    at: float
    thread: Thread
    bytes: int
    on_device: bool


@dataclass(frozen=True)
class Trace:
    """The events recorded, inside the window or not. `main` is the thread of the window.

    `callers` are the spans that name lines of the program, `allocations` what a recording with
    memory has.
    """

    window: Span
    main: Thread
    operations: dict[Thread, list[TraceEvent]]
    calls: dict[Thread, list[TraceEvent]]
    annotations: list[TraceEvent]
    device: list[TraceEvent]
    callers: list[TraceEvent] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    functions: list[TraceEvent] = field(default_factory=list)
    """Of Python, where the recording has stacks."""
    device_name: str = "the device"
    steps: list[TraceEvent] = field(default_factory=list)
    """Where they are known otherwise than by an annotation of torch's profiler; of each its kind
    says by what."""

    @property
    def window_s(self) -> float:
        return self.window[1] - self.window[0]

    def share(self, seconds: float) -> float:
        """Return the share of the window; 0 of an empty one."""
        if not self.window_s:
            return 0.0
        return seconds / self.window_s

    @property
    def size(self) -> int:
        """Return how many events there are: what reading a recording costs."""
        by_thread = (*self.operations.values(), *self.calls.values())
        return sum(map(len, by_thread)) + len(self.annotations) + len(self.device)

    @property
    def on_device(self) -> bool:
        """Return whether a device did anything within the window."""
        return any(self.inside(self.device))

    def inside(self, events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
        """Those which begin in the window, or are under way when it begins."""
        start, end = self.window
        return (
            event
            for event in events
            if start <= event.start < end or event.start < start < event.end
        )


def read(document: object) -> Trace:
    """Read a Chrome trace. ValueError where no window was recorded, or it is not a trace."""
    entries = document.get("traceEvents") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("not a Chrome trace: no list of traceEvents")
    complete = _complete(entries)
    window = _window(complete)
    if window is None:
        raise ValueError(f"no {WINDOW} in the recording")
    trace = _trace(complete, window)
    return replace(trace, allocations=list(_allocations(entries, window["ts"])))


def read_any(entries: Iterable[object]) -> Trace:
    """Read the events of anyone's trace; without a window of the lab the whole is one.
    ValueError.
    """
    complete = _complete(entries)
    if not complete:
        raise ValueError("no operations in it")
    window = _window(complete)
    if window is None:
        start = min(raw["ts"] for raw in complete)
        end = max(raw["ts"] + raw["dur"] for raw in complete)
        first = min(complete, key=lambda raw: (raw["cat"] not in _ANNOTATIONS, raw["ts"]))
        window = {**first, "cat": "user_annotation", "name": WINDOW}
        window |= {"ts": start, "dur": max(end - start, 1e-3)}
    return _trace(complete, window)


def is_relevant(raw: object) -> TypeGuard[dict[str, Any]]:
    """Return whether the event is read, if it is complete."""
    if not isinstance(raw, dict) or raw.get("ph") != "X":
        return False
    kind = raw.get("cat")
    if kind == _FUNCTION:
        return not str(raw.get("name", "")).startswith(_NOT_OWN)
    return isinstance(kind, str) and kind in RELEVANT


def _complete(entries: Iterable[object]) -> list[dict[str, Any]]:
    """The events that count, and lack no name, time or thread."""
    return [raw for raw in filter(is_relevant, entries) if is_complete(raw)]


def _window(complete: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The longest that the lab marked."""
    windows = [raw for raw in complete if raw["cat"] in _ANNOTATIONS and raw["name"] == WINDOW]
    return max(windows, key=lambda raw: raw["dur"], default=None)


def _trace(complete: list[dict[str, Any]], frame: dict[str, Any]) -> Trace:
    operations = defaultdict(list)
    calls = defaultdict(list)
    annotations = []
    device = []
    callers = []
    functions = []
    for raw in complete:
        event = _event(raw, frame["ts"])
        if event.kind in DEVICE:
            device.append(event)
        elif event.kind in CALLS:
            calls[event.thread].append(event)
        elif event.kind == _FUNCTION:
            functions.append(event)
        elif event.name.startswith(CALLER):
            callers.append(event)
        elif event.kind == "cpu_op" and not event.name.startswith(TRACE_PREFIX):
            operations[event.thread].append(event)
        elif raw is not frame:
            annotations.append(event)
    return Trace(
        window=_event(frame, frame["ts"]).span,
        main=(frame["pid"], frame["tid"]),
        operations=dict(operations),
        calls=dict(calls),
        annotations=annotations,
        device=device,
        callers=callers,
        functions=functions,
    )


def _allocations(entries: Iterable[object], origin: float) -> Iterator[Allocation]:
    """Those of a recording with memory; what lacks a time, a thread or its bytes is no such."""
    for raw in entries:
        if not isinstance(raw, dict) or raw.get("ph") != "i" or raw.get("name") != _MEMORY:
            continue
        arguments = raw.get("args")
        if not isinstance(arguments, dict) or not is_complete({**raw, "dur": 0}):
            continue
        amount = arguments.get("Bytes")
        if isinstance(amount, int):
            yield Allocation(
                at=(raw["ts"] - origin) * 1e-6,
                thread=(raw["pid"], raw["tid"]),
                bytes=amount,
                on_device=arguments.get("Device Type") != 0,
            )


def _event(raw: dict[str, Any], origin: float) -> TraceEvent:
    arguments = raw.get("args")
    if not isinstance(arguments, dict):
        arguments = {}
    correlation = arguments.get("correlation")
    start = raw["ts"] - origin
    return TraceEvent(
        kind=raw["cat"],
        name=raw["name"],
        start=start * 1e-6,
        end=(start + raw["dur"]) * 1e-6,
        thread=(raw["pid"], raw["tid"]),
        correlation=correlation if isinstance(correlation, int) else None,
        arguments=arguments,
    )


def is_complete(raw: dict[str, Any]) -> bool:
    """Return whether a complete event lacks no name, time or thread."""
    return (
        isinstance(raw.get("name"), str)
        and _is_time(raw.get("ts"))
        and _is_time(raw.get("dur"))
        and raw["dur"] >= 0
        and isinstance(raw.get("pid"), int | str)
        and isinstance(raw.get("tid"), int | str)
    )


def _is_time(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -_MOST_US < value < _MOST_US
