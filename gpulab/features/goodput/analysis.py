"""Where the time of a recorded window goes: work that the step is for, and everything else.

Every instant of the window belongs to the first of `CATEGORIES` that it fits, by subtracting
unions: nothing counts twice, and the categories sum to the window. The profiler makes the window
longer; `step_parts` says what that leaves to know of the step.

goodput = useful seconds / seconds of the step. On a device kernels and copies take as long under
the profiler as without it: their seconds are the recording's, the step's are the measurement's, and
what is idle is what is left. On a CPU the recorded operations hold the time that recording them
takes: it is subtracted where it fell.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from gpulab.core.payloads import (
    BUSY,
    CATEGORIES,
    COPY,
    DATA,
    SYNC,
    TRACE_PREFIX,
    UNMARKED,
    USEFUL,
    WAITING,
    communicates,
)
from gpulab.features.goodput.events import Partition
from gpulab.stats.time_spans import (
    Span,
    clip,
    contains,
    innermost,
    intersect,
    measure,
    subtract,
    union,
)
from gpulab.traces.trace import Thread, Trace, TraceEvent

LOADER = "enumerate(DataLoader)"
_WORKER_ITERATOR = "_MultiProcessingDataLoaderIter"
"""The iterator that sleeps until its workers have loaded; any other loads by itself."""
ALLOC_CALL = re.compile(r"cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister)|cuMem(?!cpy|set)")
SYNC_CALL = re.compile(r"cu(da)?\w*Synchronize|cu(da)?Memcpy(?!\w*Async)")
_ALLOC_OPERATION = re.compile(r"aten::(empty|new_empty|resize_)")
_SEEN = CATEGORIES[: CATEGORIES.index("other")]
"""What a recording has; the rest is what is left of it."""


def partition(trace: Trace, off_cpu: Mapping[str, float] = {}, taken_s: float = 0.0) -> Partition:
    """Partition the window of a recording: of the device where it did anything there, else of the
    main thread.

    `off_cpu` is for a run on the CPU: the seconds in which the main thread did not run, by the
    innermost phase around them, "" for none. Of them others took `taken_s`, from whatever ran.
    """
    on_device = trace.on_device
    phases = _Phases(trace)
    parts = _device_parts(trace, phases) if on_device else _main_thread_parts(trace, phases)
    seconds = {category: measure(parts[category]) for category in CATEGORIES if category in parts}
    if not on_device:
        off_s = sum(off_cpu.values())
        taken = min(1.0, taken_s / off_s) if off_s > 0 else 0.0
        _subtract_off_cpu(seconds, phases, off_cpu, taken)
    copies = union(event.span for event in trace.inside(trace.device) if _is_host_copy(event))
    return Partition(
        window_s=trace.window_s,
        seconds=seconds,
        marked=phases.marks_useful,
        on_device=on_device,
        copied_s=measure(clip(copies, *trace.window)),
        around={} if on_device else _recorded_beside(trace, parts),
    )


class _Phases:
    """Phases of the main thread, and turns of DataLoaders, which wait for data like one."""

    def __init__(self, trace: Trace) -> None:
        own = [event for event in trace.inside(trace.annotations) if event.thread == trace.main]
        notes = [event for event in own if event.name.startswith((TRACE_PREFIX, LOADER))]
        marks = [event for event in notes if event.name.startswith(TRACE_PREFIX)]
        self.marks_useful = any(_phase_name(event) == USEFUL for event in marks)
        self.unmarked_work = "other busy" if self.marks_useful else USEFUL
        """What work is that no phase marks."""
        self.around: dict[str, list[Span]] = defaultdict(list)
        """The spans of each phase, whatever is inside them."""
        for event in notes:
            self.around[_phase_name(event)].append(event.span)
        self.innermost = _innermost(notes, trace.window)
        """The instants of which each phase is the innermost."""
        self._marked = _innermost(marks, trace.window)
        self._marked[UNMARKED] = subtract(
            union([trace.window]), union(event.span for event in marks)
        )
        sleeping = union(event.span for event in notes if _WORKER_ITERATOR in event.name)
        self._asleep = intersect(self.innermost[LOADER], sleeping)

    def beside_loaders(self, phase: str, off_s: float) -> float:
        """Return the seconds off the CPU in a phase that no DataLoader in it explains.

        A loader with workers sleeps; one without runs, and has its part of what is spread over the
        time of the phase.
        """
        spans = self._marked[phase]
        asleep_s = measure(intersect(spans, self._asleep))
        awake_s = measure(spans) - asleep_s
        loading_s = measure(intersect(spans, self.innermost[LOADER])) - asleep_s
        return max(0.0, off_s - asleep_s) * (1 - loading_s / awake_s if awake_s > 0 else 1)


def _phase_name(note: TraceEvent) -> str:
    if note.name.startswith(LOADER):
        return LOADER
    return note.name.removeprefix(TRACE_PREFIX)


def _innermost(notes: list[TraceEvent], window: Span) -> dict[str, list[Span]]:
    by_phase: dict[str, list[Span]] = defaultdict(list)
    for start, end, index in innermost([note.span for note in notes]):
        by_phase[_phase_name(notes[index])].extend(clip([(start, end)], *window))
    return by_phase


def _device_parts(trace: Trace, phases: _Phases) -> dict[str, list[Span]]:
    """Return what the device did; and where it did nothing, what the host was doing.

    A kernel is useful where the call that launched it, on any thread, began while the innermost
    phase of the main thread was "useful", and every kernel is where nothing is marked so. Those
    that communicate never are.
    """
    spans: dict[str, list[Span]] = defaultdict(list)
    every_call = (event for calls in trace.calls.values() for event in calls)
    launch_start: dict[int | None, float] = {
        event.correlation: event.start for event in every_call if event.correlation is not None
    }
    for event in trace.inside(trace.device):
        spans[_device_category(event, phases, launch_start)].append(event.span)

    host = [trace.main, *(thread for thread in trace.operations if _is_backward(trace, thread))]
    calls = [event for thread in host for event in trace.calls.get(thread, ())]
    spans["alloc"] = [event.span for event in calls if ALLOC_CALL.match(event.name)]
    spans["data wait"] = phases.around[DATA] + phases.around[LOADER]
    spans["sync"] = phases.around[SYNC] + [
        event.span for event in calls if SYNC_CALL.match(event.name)
    ]
    work = (event for thread in host for event in trace.operations.get(thread, ()))
    spans["launch-bound"] = [event.span for event in (*calls, *work)]
    return _first_match(trace.window, {category: spans[category] for category in _SEEN})


def _device_category(
    event: TraceEvent, phases: _Phases, launch_start: Mapping[int | None, float]
) -> str:
    if _is_host_copy(event):
        return "copies"
    if event.kind != "kernel":
        if "PtoP" in event.name:
            return "communication"
        return phases.unmarked_work
    if communicates(event.name):
        return "communication"
    launched = launch_start.get(event.correlation)
    if launched is not None and contains(phases.innermost[USEFUL], launched):
        return USEFUL
    return phases.unmarked_work


def _is_host_copy(event: TraceEvent) -> bool:
    """Return whether it is a copy between the device and its host."""
    return event.kind == "gpu_memcpy" and "DtoD" not in event.name and "PtoP" not in event.name


def _is_backward(trace: Trace, thread: Thread) -> bool:
    """Return whether autograd's engine ran there: for CUDA on threads of its own."""
    return thread != trace.main and any(
        event.name.startswith("autograd::engine::evaluate_function")
        for event in trace.operations[thread]
    )


def _main_thread_parts(trace: Trace, phases: _Phases) -> dict[str, list[Span]]:
    """The main thread as the device: waits by innermost phase; allocation may be useful."""
    work = trace.operations.get(trace.main, [])
    busy = [event.span for event in work]
    waits = {
        "copies": phases.innermost[COPY],
        "data wait": phases.innermost[DATA] + phases.innermost[LOADER],
        "sync": phases.innermost[SYNC],
    }
    alloc = {"alloc": [event.span for event in work if _ALLOC_OPERATION.match(event.name)]}
    if phases.marks_useful:
        useful = {USEFUL: phases.innermost[USEFUL], **alloc}
    else:
        useful = {**alloc, USEFUL: busy}
    return _first_match(trace.window, {**waits, **useful, "other busy": busy})


def _recorded_beside(trace: Trace, parts: Mapping[str, list[Span]]) -> dict[str, float]:
    """Return, of the main thread's operations and phases, the share that begins at the end of an
    instant of each category.
    """
    order = sorted((start, category) for category, spans in parts.items() for start, _ in spans)
    starts = [start for start, _ in order]
    work = trace.inside(trace.operations.get(trace.main, []))
    notes = [event for event in trace.inside(trace.annotations) if event.thread == trace.main]
    # recording a phase costs as much as ten operations
    costs = [*((event.start, 1.0) for event in work), *((event.start, 10.0) for event in notes)]
    total = sum(cost for _, cost in costs)
    around: dict[str, float] = defaultdict(float)
    for start, cost in costs:
        _, category = order[max(0, bisect_left(starts, start) - 1)]
        around[category] += cost / total
    return dict(around)


def _first_match(window: Span, spans: Mapping[str, Iterable[Span]]) -> dict[str, list[Span]]:
    """The instants of the window by the first category that has them; what none has is "other"."""
    rest = union([window])
    parts = {}
    for category, candidates in spans.items():
        instants = union(candidates)
        parts[category] = intersect(rest, instants)
        rest = subtract(rest, instants)
    return {**parts, "other": rest}


def _subtract_off_cpu(
    seconds: dict[str, float], phases: _Phases, off_cpu: Mapping[str, float], taken: float
) -> None:
    """Move what the main thread did not run to "preempted", but for what waits: phases, and
    DataLoaders.

    The share `taken` of it came from everything that runs in proportion; the rest are waits that no
    phase names, so it comes from what is no work first.
    """
    seconds["preempted"] = 0.0
    for phase, off_s in off_cpu.items():
        remaining_s = phases.beside_loaders(phase, off_s)
        categories: tuple[str, ...] = ("other", phases.unmarked_work)
        if phase in WAITING:
            categories = ()
        elif phase == USEFUL:
            categories = (USEFUL,)
        running_s = sum(seconds[category] for category in categories)
        spread = min(1.0, max(0.0, remaining_s) * taken / running_s) if running_s > 0 else 0.0
        for category in categories:
            moved_s = seconds[category] * spread
            seconds[category] -= moved_s
            seconds["preempted"] += moved_s
            remaining_s -= moved_s
        for category in categories:
            moved_s = max(0.0, min(remaining_s, seconds[category]))
            seconds[category] -= moved_s
            seconds["preempted"] += moved_s
            remaining_s -= moved_s


_COMPILED_GRAPH = "## Call CompiledFxGraph"
_COMPILED = (_COMPILED_GRAPH, "Torch-Compiled Region")


def is_compiled(trace: Trace) -> bool:
    """Return whether torch's compiler made code that ran, which recordings without shapes say."""
    names = (event.name for events in trace.operations.values() for event in events)
    return any(name.startswith(_COMPILED) for name in names)


def call_counts(trace: Trace) -> dict[str, int]:
    """Return how often each kernel or copy ran, else each operation of the host, nested ones too:
    to compare recordings.

    Marks of compiled graphs are no operations: only a recording without shapes has them among
    these.
    """
    if trace.on_device:
        return dict(Counter(event.name for event in trace.inside(trace.device)))
    names = (event.name for events in trace.operations.values() for event in trace.inside(events))
    return dict(Counter(name for name in names if not name.startswith(_COMPILED_GRAPH)))


_MUCH = 0.05


def busy_s(partition: Partition) -> float:
    """Seconds of the window in which the device worked."""
    return sum(partition.seconds.get(category, 0.0) for category in BUSY)


def parts_on_device(partition: Partition, steps: int, step_s: float) -> dict[str, float]:
    """Seconds of a step of `step_s` by category; they sum to it.

    What is busy keeps its recorded seconds, the more useful first where the step is too short for
    all of it. What is idle is scaled to the rest, but never made longer: what no recording explains
    is "other".
    """
    parts = {category: seconds / steps for category, seconds in partition.seconds.items()}
    rest_s = step_s
    for category in BUSY:
        if category in parts:
            parts[category] = min(parts[category], rest_s)
            rest_s -= parts[category]
    idle = [category for category in parts if category not in BUSY]
    idle_s = sum(parts[category] for category in idle)
    scale = min(1.0, rest_s / idle_s) if idle_s else 0.0
    for category in idle:
        parts[category] *= scale
    unexplained_s = max(0.0, rest_s - idle_s * scale)
    return {**parts, "other": parts.get("other", 0.0) + unexplained_s}


def parts_on_cpu(
    partition: Partition, steps: int, plain_s: float, step_s: float
) -> dict[str, float]:
    """Seconds of a step of `step_s` by category; they sum to it.

    What the window is longer than steps of `plain_s`, in the same process, is what others took of
    it, which the step in the median does not have, and beyond that what recording took. This is
    subtracted from the categories by where operations begin. Where that is not known, by their
    seconds, which leaves the shares of the window. The rest is scaled to the step.
    """
    recorded = {category: max(0.0, seconds) for category, seconds in partition.seconds.items()}
    overhead_s = max(0.0, partition.window_s - plain_s * steps)
    if partition.around:
        taken_s = taken_by_others_s(partition, steps, plain_s)
        recorded["preempted"] = recorded.get("preempted", 0.0) - taken_s
        for category in recorded:
            share = partition.around.get(category, 0.0)
            recorded[category] = max(0.0, recorded[category] - (overhead_s - taken_s) * share)
    total_s = sum(recorded.values())
    if not total_s:
        return {**dict.fromkeys(recorded, 0.0), "other": step_s}
    return {category: seconds / total_s * step_s for category, seconds in recorded.items()}


def taken_by_others_s(partition: Partition, steps: int, plain_s: float) -> float:
    """Return the seconds off the CPU in a window beyond what the same steps have unprofiled."""
    excess_s = max(0.0, partition.window_s - plain_s * steps)
    return min(excess_s, max(0.0, partition.seconds.get("preempted", 0.0)))


def is_disturbed(partition: Partition, steps: int, plain_s: float) -> bool:
    """Return whether others took much of a CPU's window alone: then its parts are estimates."""
    preempted_s = partition.seconds.get("preempted", 0.0)
    excess_s = partition.window_s - plain_s * steps
    return preempted_s > _MUCH * partition.window_s and excess_s > preempted_s / 2
