"""A recording of torch.profiler, read from its Chrome trace: the events that goodput is made of.

Times are in seconds from the start of the window, so that a nanosecond survives a clock that counts from boot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from gpulab.model.intervals import Span

PREFIX = "gpulab:"
WINDOW = f"{PREFIX}window"
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
CALLS = frozenset({"cuda_runtime", "cuda_driver"})
_MARKS = frozenset({"user_annotation", "cpu_op"})
"""The lab's own marks are of the second: the profiler takes hundreds of microseconds for each of the first."""
OF_INTEREST = DEVICE | CALLS | _MARKS

Thread = tuple[int | str, int | str]
"""Process and thread; of a device event, device and stream."""


class Event(NamedTuple):
    """One event: its category in the trace, and what ties it to a launch.

    A device event has the `correlation` of the runtime or driver call that launched it; None where there is none.
    """

    kind: str
    name: str
    start: float
    end: float
    thread: Thread
    correlation: int | None
    dims: Any

    @property
    def span(self) -> Span:
        return self.start, self.end


@dataclass(frozen=True)
class Trace:
    """What was recorded, whether or not it is in the window."""

    window: Span
    main: Thread
    """The thread of the window."""
    operations: dict[Thread, list[Event]]
    calls: dict[Thread, list[Event]]
    annotations: list[Event]
    device: list[Event]
    skipped: int
    """Events of interest left out, for want of a name, a time or a thread."""

    @property
    def window_s(self) -> float:
        return self.window[1] - self.window[0]

    @property
    def events(self) -> int:
        """How many there are: what reading a recording costs."""
        of_threads = (*self.operations.values(), *self.calls.values())
        return sum(map(len, of_threads)) + len(self.annotations) + len(self.device)

    @property
    def on_device(self) -> bool:
        """Whether a device did anything within the window."""
        return any(self.inside(self.device))

    def inside(self, events: Iterable[Event]) -> Iterator[Event]:
        """Those which begin in the window, or are under way when it begins."""
        began, ended = self.window
        return (one for one in events if began <= one.start < ended or one.start < began < one.end)


def read(document: dict[str, Any]) -> Trace:
    """Read a Chrome trace, in microseconds there. ValueError where no window was recorded, or it is not a trace."""
    listed = document.get("traceEvents")
    if not isinstance(listed, list):
        raise ValueError("not a Chrome trace: no list of traceEvents")
    wanted = [raw for raw in listed if isinstance(raw, dict) and raw.get("ph") == "X" and raw.get("cat") in OF_INTEREST]
    whole = [raw for raw in wanted if _is_whole(raw)]
    windows = [raw for raw in whole if raw["cat"] in _MARKS and raw["name"] == WINDOW]
    if not windows:
        raise ValueError(f"no {WINDOW} in the recording")
    frame = max(windows, key=lambda raw: raw["dur"])

    operations, calls = defaultdict(list), defaultdict(list)
    annotations, device = [], []
    for raw in whole:
        event = _event(raw, frame["ts"])
        if event.kind in DEVICE:
            device.append(event)
        elif event.kind in CALLS:
            calls[event.thread].append(event)
        elif event.kind == "cpu_op" and not event.name.startswith(PREFIX):
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
        skipped=len(wanted) - len(whole),
    )


def _event(raw: dict[str, Any], origin: float) -> Event:
    arguments = raw.get("args")
    arguments = arguments if isinstance(arguments, dict) else {}
    correlation = arguments.get("correlation")
    start = raw["ts"] - origin
    return Event(
        kind=raw["cat"],
        name=raw["name"],
        start=start * 1e-6,
        end=(start + raw["dur"]) * 1e-6,
        thread=(raw["pid"], raw["tid"]),
        correlation=correlation if isinstance(correlation, int) else None,
        dims=arguments.get("Input Dims"),
    )


def _is_whole(raw: dict[str, Any]) -> bool:
    return (
        isinstance(raw.get("name"), str)
        and _is_time(raw.get("ts"))
        and _is_time(raw.get("dur"))
        and raw["dur"] >= 0
        and isinstance(raw.get("pid"), int | str)
        and isinstance(raw.get("tid"), int | str)
    )


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def validate(document: object) -> list[str]:
    """What a viewer of Chrome traces would not draw, one line for each kind of problem; empty where all is well.

    Every event has ph, name, ts (us), pid and tid, and a complete one ("X") a dur >= 0. Metadata ("M") needs no ts.
    """
    listed = document.get("traceEvents") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return ["traceEvents is not a list"]
    found: dict[str, list[int]] = defaultdict(list)
    for index, raw in enumerate(listed):
        for problem in _problems(raw):
            found[problem].append(index)
    return [
        f"{problem}: {len(where)} of {len(listed)} events, the first is {where[0]}" for problem, where in found.items()
    ]


def _problems(raw: object) -> Iterator[str]:
    if not isinstance(raw, dict):
        yield "not an object"
        return
    phase = raw.get("ph")
    if not isinstance(phase, str) or not phase:
        yield "no ph"
    if not isinstance(raw.get("name"), str):
        yield "no name"
    if not _is_time(raw.get("ts")) and (phase != "M" or "ts" in raw):
        yield "no ts"
    for key in ("pid", "tid"):
        if not isinstance(raw.get(key), int | str):
            yield f"no {key}"
    if phase == "X" and not (_is_time(raw.get("dur")) and raw["dur"] >= 0):
        yield "no dur >= 0"
