"""The trace that jax.profiler writes for the trace viewer (`*.trace.json.gz`), as any recording is
read: kernels and copies of a GPU, what the host did, and steps.

On a CPU the device is XLA: its operations in whichever thread they ran. Events have no categories
here; what one is follows from its process, its thread, and its name. Where the profile began and
ended is left out, and so is all in the thread of the program that a call explains.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpulab.core.units import plural
from gpulab.stats.time_spans import Span
from gpulab.traces.trace import REPEATED, WINDOW, Thread, Trace, TraceEvent, is_complete

_MOST_EVENTS = 1_000_000
"""The earliest that the file has; all are in the `*.xplane.pb` beside it."""
_CUT = "the trace viewer's file has the first million events; the rest is in *.xplane.pb"
_FOLDER = "plugins/profile/*/*.trace.json.gz"
_NAMES, _STEP = ("process_name", "thread_name"), "step_num"
DISPATCHING, COMPILING = "dispatching", "compiling"
_CAUSES = {
    DISPATCHING: re.compile(r"PjitFunction\(|\w*LoadedExecutable::Execute\w*$|PmapFunction\("),
    COMPILING: re.compile(
        r"backend_compile|lower_sharding_computation|trace_to_jaxpr|"
        r"\$(pjit|pxla|compiler|partial_eval|mlir|stages)\.py:\d+ "
        r"\w*(compile|lower|trace_to|trace_for|pjit_jaxpr|hlo)"
    ),
    "the host waits for the device": re.compile(
        r"np\.asarray\(jax\.Array\)|\w+::(Await|BlockHostUntilReady|ToLiteral\w*)$|"
        r"\$\w+\.py:\d+ (block_until_ready|device_get|effects_barrier)$"
    ),
    "the host copies": re.compile(r"BatchedDevicePut|\w+::BufferFromHost|\$\w+\.py:\d+ device_put"),
}
"""What the host does in calls with such names, and in all that these call."""
_JITTED = re.compile(r"PjitFunction\((.*)\)")
_XLA_ON_HOST = re.compile(r"(ThunkExecutor::Execute|TfrtCpuExecutable::ExecuteHelper)$")
"""Of a CPU before XLA named its operations there, in JAX 0.6 and older."""
_DRIVER = re.compile(r"(cu|hip)[A-Z]\w+")
_COPY = re.compile(r"Memcpy|Memset|Copy\w+To\w+$")
_BEGINS = re.compile(r"\$profiler\.py:\d+ start_trace")
_ENDS = re.compile(r"\$profiler\.py:\d+ stop_trace")
_FEWEST_CYCLES, _LONGEST_CYCLE = 3, 1_000
Events = dict[Thread, list[dict[str, Any]]]


def recordings_in(folder: Path) -> list[Path]:
    """Return the newest traces in a folder that jax.profiler wrote to, one of each host."""
    found = sorted(folder.glob(_FOLDER))
    return [path for path in found if path.parent == found[-1].parent]


def read(entries: Iterable[object]) -> tuple[Trace, str]:
    """Return the recording, and what of it is not there. ValueError where nothing is recorded."""
    events: Events = defaultdict(list)
    names: dict[Any, str] = {}
    for raw in entries:
        if isinstance(raw, dict) and raw.get("ph") == "X" and is_complete(raw):
            events[raw["pid"], raw["tid"]].append(raw)
        elif isinstance(raw, dict) and raw.get("name") in _NAMES:
            names[raw.get("pid"), raw.get("tid")] = str(_arguments(raw).get("name"))
    if not events:
        raise ValueError("no events in it: nothing ran between start_trace and stop_trace")
    main = max(events, key=lambda thread: _weight(events[thread]))
    is_cut = sum(map(len, events.values())) >= _MOST_EVENTS
    window = _window(events, main, is_cut)
    trace = _host([_event(raw, main, window) for raw in events[main]], main, window)
    for thread, raw in _device(events, names):
        event = _event(raw, thread, window, "gpu_memcpy" if _COPY.match(raw["name"]) else "kernel")
        if event.end > event.start:
            trace.device.append(event)
    devices = {event.thread[0] for event in trace.device}
    if devices == {main[0]} and not names.get((main[0], None), "").startswith("/device:"):
        trace = replace(trace, device_name="XLA on the CPU")
    elif len(devices) > 1:
        trace = replace(trace, device_name=f"at least one of {len(devices)} devices")
    return trace, _CUT if is_cut else ""


def _weight(events: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Return what makes a thread the program's main one: its steps, calls of JAX, Python."""
    steps = sum(_STEP in _arguments(raw) for raw in events)
    calls = sum(raw["name"].startswith("PjitFunction(") for raw in events)
    return steps, calls, sum(raw["name"].startswith("$") for raw in events)


def _arguments(raw: dict[str, Any]) -> dict[str, Any]:
    arguments = raw.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _window(events: Events, main: Thread, is_cut: bool) -> Span:
    """Return from when to when the program was recorded, in us: as gpulab marked it, or without the
    profiler's own start and end; of what is cut, up to the last event that begins.
    """
    every = [raw for of_thread in events.values() for raw in of_thread]
    marks = [raw for raw in events[main] if _name(raw) == WINDOW]
    if marks:
        return marks[0]["ts"], marks[0]["ts"] + marks[0]["dur"]
    starts = [raw["ts"] + raw["dur"] for raw in events[main] if _BEGINS.match(raw["name"])]
    stops = [raw["ts"] for raw in events[main] if _ENDS.match(raw["name"])]
    start = min(starts or [raw["ts"] for raw in every])
    end = max(stops or [raw["ts"] + (0 if is_cut else raw["dur"]) for raw in every])
    return start, max(start, end)


def _event(raw: dict[str, Any], thread: Thread, window: Span, kind: str = "") -> TraceEvent:
    """Return what of an event is in the window, in seconds from its start."""
    first, last = window
    start, end = max(raw["ts"], first) - first, min(raw["ts"] + raw["dur"], last) - first
    arguments = _arguments(raw)
    number = str(arguments.get("correlation_id"))
    correlation = int(number) if number.isdecimal() and len(number) < 19 else None
    kept = {key: arguments[key] for key in (_STEP,) if key in arguments}
    return TraceEvent(kind, _name(raw), start * 1e-6, end * 1e-6, thread, correlation, kept)


def _name(raw: dict[str, Any]) -> str:
    """Return the whole name: of one with a colon in it the viewer shows the end."""
    return str(_arguments(raw).get("long_name", raw["name"]))


def _device(events: Events, names: dict[Any, str]) -> list[tuple[Thread, dict[str, Any]]]:
    """Return what the devices did: of GPUs their streams, of others the line of XLA's operations,
    which GPUs have too in older files; without a device, XLA's operations on the host.
    """
    devices = [each for each in events if names.get((each[0], None), "").startswith("/device:")]
    streams = [each for each in devices if names.get(each, "").startswith("Stream #")]
    lines = streams or [each for each in devices if names.get(each) == "XLA Ops"]
    every = [(each, raw) for each in lines or events for raw in events[each]]
    if lines:
        return every
    named = [item for item in every if "hlo_op" in _arguments(item[1])]
    return named or [item for item in every if _XLA_ON_HOST.match(item[1]["name"])]


def _host(events: list[TraceEvent], main: Thread, window: Span) -> Trace:
    """Return what the main thread did: calls of the driver; the outermost call that says what the
    host does, of which compiling may be a part; and outside of these Python and named ranges.
    """
    found = Trace((0.0, (window[1] - window[0]) * 1e-6), main, {main: []}, {main: []}, [], [])
    around: list[TraceEvent] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        while around and around[-1].end <= event.start:
            around.pop()
        if event.end <= event.start or event.name == WINDOW:
            continue
        outer = around[-1] if around else None
        cause = next((each for each, names in _CAUSES.items() if names.match(event.name)), None)
        if _STEP in event.arguments:
            found.steps.append(event._replace(kind=f"StepTraceAnnotation {event.name}"))
        elif _DRIVER.match(event.name):
            name = event.name.partition(" ")[0]
            found.calls[main].append(event._replace(kind="cuda_driver", name=name))
        elif cause and (outer is None or (outer.kind, cause) == (DISPATCHING, COMPILING)):
            own = _JITTED.sub(r"jit \1", event.name).replace("<lambda>", "lambda").lstrip("$")
            around.append(event._replace(kind=cause, name=outer.name if outer else own))
            found.operations[main].append(around[-1])
        elif outer is None and event.name.startswith("$"):
            found.functions.append(event._replace(name=event.name[1:]))
        elif outer is None:
            found.annotations.append(event)
    calls = [each for each in found.operations[main] if each.kind == DISPATCHING]
    found.steps.extend([] if found.steps else _repeated(calls))
    return found


def _repeated(calls: list[TraceEvent]) -> list[TraceEvent]:
    """Return the shortest cycle of calls of which all of them consist; nothing where they are not
    such, or of fewer than three.
    """
    names = [call.name for call in calls]
    for length in range(1, min(len(names) // _FEWEST_CYCLES, _LONGEST_CYCLE) + 1):
        if names[length:] == names[:-length]:
            others = f" and {plural(length - 1, 'more call')}" if length > 1 else ""
            cycles = zip(calls[::length], calls[length - 1 :: length], strict=False)
            kind = f"{REPEATED}{names[0]}{others}"
            return [first._replace(kind=kind, end=last.end) for first, last in cycles]
    return []
