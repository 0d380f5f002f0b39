"""The trace that jax.profiler writes for the trace viewer (`*.trace.json.gz`), as any recording is
read: kernels and copies of a GPU, what the host did, and steps.

On a CPU the device is XLA: its operations in whichever thread they ran. Events have no categories
here; what one is follows from its process, its thread, and its name. Where the profile began and
ended is left out, and so is all in the thread of the program that a call explains.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from gpulab.stats.time_spans import Span
from gpulab.traces.trace import WINDOW, Thread, Trace, TraceEvent, is_complete

_HEAD_LENGTH = 1 << 16
_PROCESS = re.compile(r'"name"\s*:\s*"/(device|host):')
"""The names of the processes, which come first, are those of devices of XLA."""
_MOST_EVENTS = 1_000_000
"""The earliest that the file has; all are in the `*.xplane.pb` beside it."""
_FOLDER = "plugins/profile/*/*.trace.json.gz"
DISPATCHING, COMPILING = "dispatching", "compiling"
_CAUSES = {
    DISPATCHING: re.compile(r"PjitFunction\(|\w*LoadedExecutable::Execute\w*$|PmapFunction\("),
    COMPILING: re.compile(
        r"(backend_compile|lower_sharding_computation|trace_to_jaxpr)|"
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
_DRIVER = re.compile(r"cu[A-Z]\w+")
_PROFILER = re.compile(r"\$profiler\.py:\d+ (start|stop)_trace")
_LEAST_CYCLES, _LONGEST_CYCLE = 3, 1_000


class _Threads(NamedTuple):
    """The complete events by thread, and the names of processes and threads."""

    events: dict[Thread, list[dict[str, Any]]]
    processes: dict[int | str, str]
    names: dict[Thread, str]


def is_its(text: TextIO) -> bool:
    """Return whether the text is a trace of JAX; it is at its start again."""
    found = _PROCESS.search(text.read(_HEAD_LENGTH))
    text.seek(0)
    return found is not None


def recordings_in(folder: Path) -> list[Path]:
    """Return the newest traces in a folder that jax.profiler wrote to, one of each host."""
    found = sorted(folder.glob(_FOLDER))
    return [path for path in found if path.parent == found[-1].parent]


def read(entries: Iterable[object]) -> tuple[Trace, str]:
    """Return the recording, and what of it is not there. ValueError where nothing is recorded."""
    threads = _threads(entries)
    main = max(threads.events, key=lambda thread: _weight(threads.events[thread]), default=None)
    if main is None:
        raise ValueError("no events in it: nothing ran between start_trace and stop_trace")
    is_cut = sum(map(len, threads.events.values())) >= _MOST_EVENTS
    window = _window(threads, main, is_cut)
    events = [_event(raw, "", main) for raw in threads.events[main]]
    events = [event for each in events if (event := _clipped(each, window)) is not None]
    device = [_clipped(event, window) for event in _device(threads)]
    trace = Trace(
        window=window,
        main=main,
        operations={main: []},
        calls={main: []},
        annotations=[],
        device=[event for event in device if event is not None],
    )
    if trace.device and trace.device[0].thread[0] == main[0]:
        trace = replace(trace, device_name="XLA on the CPU")
    _add_host(trace, events)
    steps = [each for each in trace.annotations if "step_num" in each.arguments]
    trace = replace(
        trace,
        annotations=[each for each in trace.annotations if "step_num" not in each.arguments],
        steps=[each._replace(kind=f"StepTraceAnnotation {each.name}") for each in steps]
        or _repeated([each for each in trace.operations[main] if each.kind == DISPATCHING]),
    )
    note = "the trace viewer's file has the first million events; the rest is in *.xplane.pb"
    return _from_zero(trace), note if is_cut else ""


def _threads(entries: Iterable[object]) -> _Threads:
    threads = _Threads(defaultdict(list), {}, {})
    for raw in entries:
        if not isinstance(raw, dict):
            continue
        if raw.get("ph") == "X" and is_complete(raw):
            threads.events[raw["pid"], raw["tid"]].append(raw)
        elif raw.get("ph") == "M" and isinstance(raw.get("args"), dict):
            name, thread = str(raw["args"].get("name", "")), (raw.get("pid"), raw.get("tid"))
            if raw.get("name") == "process_name":
                threads.processes[raw.get("pid", "")] = name
            elif raw.get("name") == "thread_name":
                threads.names[thread] = name  # type: ignore[index]
    return threads


def _weight(events: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Return what makes a thread the program's main one: its steps, calls of JAX, Python."""
    steps = sum("step_num" in _arguments(raw) for raw in events)
    calls = sum(raw["name"].startswith("PjitFunction(") for raw in events)
    return steps, calls, sum(raw["name"].startswith("$") for raw in events)


def _arguments(raw: dict[str, Any]) -> dict[str, Any]:
    arguments = raw.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _window(threads: _Threads, main: Thread, is_cut: bool) -> Span:
    """Return from when to when the program was recorded: as gpulab marked it, or without the
    profiler's own start and end; of what is cut, up to the last event that begins.
    """
    every = [raw for each in threads.events.values() for raw in each]
    start = min(raw["ts"] for raw in every)
    end = max(raw["ts"] if is_cut else raw["ts"] + raw["dur"] for raw in every)
    for raw in threads.events[main]:
        if _name(raw) == WINDOW:
            return raw["ts"] * 1e-6, (raw["ts"] + raw["dur"]) * 1e-6
        found = _PROFILER.match(raw["name"])
        if found is not None and found[1] == "start":
            start = max(start, raw["ts"] + raw["dur"])
        elif found is not None:
            end = min(end, raw["ts"])
    return start * 1e-6, max(end, start) * 1e-6


def _event(raw: dict[str, Any], kind: str, thread: Thread) -> TraceEvent:
    arguments = _arguments(raw)
    number = str(arguments.get("correlation_id", ""))
    return TraceEvent(
        kind=kind,
        name=_name(raw),
        start=raw["ts"] * 1e-6,
        end=(raw["ts"] + raw["dur"]) * 1e-6,
        thread=thread,
        correlation=int(number) if number.isdecimal() and len(number) < 19 else None,
        arguments={key: arguments[key] for key in ("step_num",) if key in arguments},
    )


def _name(raw: dict[str, Any]) -> str:
    """Return the whole name: of one with a colon in it the viewer shows the end."""
    return str(_arguments(raw).get("long_name", raw["name"]))


def _clipped(event: TraceEvent, window: Span) -> TraceEvent | None:
    """Return what of an event is within the window."""
    start, end = max(event.start, window[0]), min(event.end, window[1])
    return event._replace(start=start, end=end) if end > start else None


def _device(threads: _Threads) -> Iterator[TraceEvent]:
    """Yield what the devices did: of GPUs their streams, of others the line of XLA's operations,
    which GPUs have too in older files; without a device, XLA's operations on the host.
    """
    devices = [each for each in threads.events if _process(threads, each).startswith("/device:")]
    streams = [each for each in devices if threads.names.get(each, "").startswith("Stream #")]
    lines = streams or [each for each in devices if threads.names.get(each) == "XLA Ops"]
    if lines:
        found = [(each, raw) for each in lines for raw in threads.events[each]]
    else:
        every = [(each, raw) for each, events in threads.events.items() for raw in events]
        found = [(each, raw) for each, raw in every if "hlo_op" in _arguments(raw)]
        found = found or [item for item in every if _XLA_ON_HOST.match(item[1]["name"])]
    for thread, raw in found:
        is_copy = raw["name"].startswith(("Memcpy", "Memset"))
        yield _event(raw, "gpu_memcpy" if is_copy else "kernel", thread)


def _process(threads: _Threads, thread: Thread) -> str:
    return threads.processes.get(thread[0], "")


def _add_host(trace: Trace, events: list[TraceEvent]) -> None:
    """Sort what the main thread did: calls of the driver; the outermost call that says what the
    host does, of which compiling may be a part; and outside of these Python and named ranges.
    """
    around: list[TraceEvent] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        while around and around[-1].end <= event.start:
            around.pop()
        if _DRIVER.match(event.name):
            name = event.name.partition(" ")[0]
            trace.calls[trace.main].append(event._replace(kind="cuda_driver", name=name))
            continue
        cause = next((each for each, names in _CAUSES.items() if names.match(event.name)), None)
        outer = around[-1] if around else None
        if cause is not None and (outer is None or (outer.kind, cause) == (DISPATCHING, COMPILING)):
            own = _JITTED.sub(r"jit \1", event.name).replace("<lambda>", "lambda")
            own = own.removeprefix("$")
            name = outer.name if outer is not None else own
            around.append(event._replace(kind=cause, name=name))
            trace.operations[trace.main].append(around[-1])
        elif outer is None and event.name.startswith("$"):
            trace.functions.append(event._replace(name=event.name[1:]))
        elif outer is None and event.name != WINDOW:
            trace.annotations.append(event)


def _repeated(calls: list[TraceEvent]) -> list[TraceEvent]:
    """Return the shortest cycle of calls of which all of them consist; nothing where they are not
    such, or of fewer than three.
    """
    names = [call.name for call in calls]
    for length in range(1, min(len(names) // _LEAST_CYCLES, _LONGEST_CYCLE) + 1):
        if names[length:] == names[:-length]:
            counts = Counter(names[:length])
            of = ", ".join(f"{name} x {count}" for name, count in counts.most_common(3))
            last = len(calls) // length * length
            return [
                calls[first]._replace(kind=f"repetitions: {of}", end=calls[first + length - 1].end)
                for first in range(0, last, length)
            ]
    return []


def _from_zero(trace: Trace) -> Trace:
    """Return it with times from the start of the window: a nanosecond survives them."""
    origin, end = trace.window

    def moved(events: list[TraceEvent]) -> list[TraceEvent]:
        return [each._replace(start=each.start - origin, end=each.end - origin) for each in events]

    return replace(
        trace,
        window=(0.0, end - origin),
        operations={thread: moved(events) for thread, events in trace.operations.items()},
        calls={thread: moved(events) for thread, events in trace.calls.items()},
        annotations=moved(trace.annotations),
        device=moved(trace.device),
        functions=moved(trace.functions),
        steps=moved(trace.steps),
    )
