"""Goodput: the share of a step's time that does the work the step is for, and where the rest goes.

The sources define goodput = useful compute time / total time of an iteration. Here, over a recorded window:
|union of the useful intervals| / window. Every instant of the window belongs to the first category of `CATEGORIES`
that it fits, by subtracting unions: nothing counts twice, and the categories sum to the window.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from gpulab.model.intervals import Span, clip, contains, innermost, intersect, measure, subtract, union
from gpulab.model.trace import PREFIX, Event, Thread, Trace

USEFUL, DATA, COPY, SYNC = "useful", "data", "copy", "sync"
"""Marks with a meaning; any other is its author's own."""
UNMARKED = ""
CATEGORIES = (
    "useful",
    "other busy",
    "communication",
    "copies",
    "alloc",
    "data wait",
    "sync",
    "launch-bound",
    "other",
    "preempted",
)
WAITS = frozenset({DATA, COPY, SYNC})

LOADER = "enumerate(DataLoader)"
_WITH_WORKERS = "_MultiProcessingDataLoaderIter"
"""The iterator that sleeps until its workers have loaded; any other loads by itself."""
_ALLOC_CALL = re.compile(r"cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister)|cuMem(?!cpy|set)")
_SYNC_CALL = re.compile(r"cu(da)?\w*Synchronize|cu(da)?Memcpy(?!\w*Async)")
_ALLOC_OPERATION = re.compile(r"aten::(empty|new_empty|resize_)")


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a window went, in seconds, by category in the order of `CATEGORIES`.

    A run on a device has no "preempted"; one on the CPU has no "communication" and no "launch-bound".
    `marked` says whether the step marks what is useful; where not, all its work counts as useful. `copied_s` is the
    union of a device's copies from and to the host, whatever ran meanwhile.
    """

    window_s: float
    seconds: dict[str, float]
    marked: bool
    on_device: bool
    copied_s: float = 0.0

    @property
    def shares(self) -> dict[str, float]:
        """Fractions of the window, which sum to 1; zeros where the window is empty."""
        return {name: one / self.window_s if self.window_s else 0.0 for name, one in self.seconds.items()}

    @property
    def goodput(self) -> float:
        """Useful seconds / seconds of the window."""
        return self.shares[USEFUL]


def partition(trace: Trace, off_cpu: Mapping[str, float] = {}) -> Partition:
    """Partition the window of a recording: of the device where it did anything there, else of the main thread.

    `off_cpu` is for a run on the CPU: the seconds in which the main thread did not run, by the innermost mark around
    them, "" for none.
    """
    on_device = trace.on_device
    marks = _Marks(trace)
    parts = _of_device(trace, marks) if on_device else _of_main_thread(trace, marks)
    seconds = {name: measure(parts[name]) for name in CATEGORIES if name in parts}
    if not on_device:
        _preempt(seconds, marks, off_cpu)
    copies = union(one.span for one in trace.inside(trace.device) if _is_copy(one))
    return Partition(
        window_s=trace.window_s,
        seconds=seconds,
        marked=marks.useful,
        on_device=on_device,
        copied_s=measure(clip(copies, *trace.window)),
    )


class _Marks:
    """The marks of the main thread, and the turns of DataLoaders there, which wait for data as a mark would."""

    def __init__(self, trace: Trace) -> None:
        here = [one for one in trace.inside(trace.annotations) if one.thread == trace.main]
        notes = [one for one in here if one.name.startswith((PREFIX, LOADER))]
        marks = [one for one in notes if one.name.startswith(PREFIX)]
        self.useful = any(_mark(one) == USEFUL for one in marks)
        self.around: dict[str, list[Span]] = defaultdict(list)
        """The spans of each mark, whatever is inside them."""
        for one in notes:
            self.around[_mark(one)].append(one.span)
        self.innermost = _innermost(notes, trace.window)
        """The instants of which each mark is the innermost."""
        self._own = _innermost(marks, trace.window)
        self._own[UNMARKED] = subtract(union([trace.window]), union(one.span for one in marks))
        self._asleep = intersect(self.innermost[LOADER], union(one.span for one in notes if _WITH_WORKERS in one.name))

    def beside_loaders(self, name: str, off_s: float) -> float:
        """Of seconds off the CPU in a mark those that no DataLoader in it explains.

        One with workers sleeps; one without runs, and has its part of what is spread over the time of the mark.
        """
        where = self._own[name]
        asleep_s = measure(intersect(where, self._asleep))
        awake_s = measure(where) - asleep_s
        loading_s = measure(intersect(where, self.innermost[LOADER])) - asleep_s
        return max(0.0, off_s - asleep_s) * (1 - loading_s / awake_s if awake_s > 0 else 1)


def _mark(note: Event) -> str:
    return LOADER if note.name.startswith(LOADER) else note.name.removeprefix(PREFIX)


def _innermost(notes: list[Event], window: Span) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = defaultdict(list)
    for start, end, index in innermost([one.span for one in notes]):
        found[_mark(notes[index])].extend(clip([(start, end)], *window))
    return found


def _of_device(trace: Trace, marks: _Marks) -> dict[str, list[Span]]:
    """What the device did; and where it did nothing, what the host was doing.

    A kernel is useful where the call that launched it, on any thread, began while the innermost mark of the main
    thread was "useful", and every kernel is where nothing is marked so. NCCL's never are: they communicate.
    """
    spans: dict[str, list[Span]] = defaultdict(list)
    every_call = (one for calls in trace.calls.values() for one in calls)
    launched = {one.correlation: one.start for one in every_call if one.correlation is not None}
    for one in trace.inside(trace.device):
        if one.kind == "kernel" and "nccl" in one.name.lower():
            category = "communication"
        elif one.kind == "kernel":
            began = None if one.correlation is None else launched.get(one.correlation)
            inside = began is not None and contains(marks.innermost[USEFUL], began)
            category = USEFUL if inside or not marks.useful else "other busy"
        elif _is_copy(one):
            category = "copies"
        elif "PtoP" in one.name:
            category = "communication"
        else:
            category = "other busy" if marks.useful else USEFUL  # where nothing is marked, all that is done counts
        spans[category].append(one.span)

    host = [trace.main, *(thread for thread in trace.operations if _is_backward(trace, thread))]
    calls = [one for thread in host for one in trace.calls.get(thread, ())]
    spans["alloc"] = [one.span for one in calls if _ALLOC_CALL.match(one.name)]
    spans["data wait"] = marks.around[DATA] + marks.around[LOADER]
    spans["sync"] = marks.around[SYNC] + [one.span for one in calls if _SYNC_CALL.match(one.name)]
    work = (one for thread in host for one in trace.operations.get(thread, ()))
    spans["launch-bound"] = [one.span for one in (*calls, *work)]
    return _first_match(trace.window, {name: spans[name] for name in CATEGORIES[:-2]})


def _is_copy(of: Event) -> bool:
    """Whether it is between the device and its host."""
    return of.kind == "gpu_memcpy" and "DtoD" not in of.name and "PtoP" not in of.name


def _is_backward(trace: Trace, thread: Thread) -> bool:
    """Whether autograd's engine ran there: on threads of its own for CUDA, while the one that called it waits."""
    return thread != trace.main and any(
        one.name.startswith("autograd::engine::evaluate_function") for one in trace.operations[thread]
    )


def _of_main_thread(trace: Trace, marks: _Marks) -> dict[str, list[Span]]:
    """The main thread as the device: waits are by the innermost mark, and what allocates is useful where marked so."""
    work = trace.operations.get(trace.main, [])
    busy = [one.span for one in work]
    waits = {
        "copies": marks.innermost[COPY],
        "data wait": marks.innermost[DATA] + marks.innermost[LOADER],
        "sync": marks.innermost[SYNC],
    }
    alloc = {"alloc": [one.span for one in work if _ALLOC_OPERATION.match(one.name)]}
    useful = {USEFUL: marks.innermost[USEFUL], **alloc} if marks.useful else {**alloc, USEFUL: busy}
    return _first_match(trace.window, {**waits, **useful, "other busy": busy})


def _first_match(window: Span, spans: Mapping[str, Iterable[Span]]) -> dict[str, list[Span]]:
    """The instants of the window by the first category that has them; what none has is "other"."""
    left, found = union([window]), {}
    for name, some in spans.items():
        here = union(some)
        found[name] = intersect(left, here)
        left = subtract(left, here)
    return {**found, "other": left}


def _preempt(seconds: dict[str, float], marks: _Marks, off_cpu: Mapping[str, float]) -> None:
    """Move what the main thread did not run to "preempted", but for what waits: marks, and DataLoaders."""
    seconds["preempted"] = 0.0
    work = "other busy" if marks.useful else USEFUL
    for name, off_s in off_cpu.items():
        left = marks.beside_loaders(name, off_s)
        for category in () if name in WAITS else (USEFUL,) if name == USEFUL else ("other", work):
            moved = max(0.0, min(left, seconds[category]))
            seconds[category] -= moved
            seconds["preempted"] += moved
            left -= moved
