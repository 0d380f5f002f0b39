"""Where the main thread is, by samples: which line of the program runs outside of torch's
operations, and which waits.

A timer's handler runs between two bytecodes: after a call that takes long, at the line of the call.
What has passed since the sample before is that line's, less the operations that the profiler
recorded meanwhile. The scheduler says how much of it the thread ran, and how much it could have run
while others did; what is left it slept or waited.
"""

from __future__ import annotations

import linecache
import os
import signal
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, thread_time
from types import CodeType, FrameType
from typing import NamedTuple

from gpulab.core.text import cut
from gpulab.features.goodput.events import LineTime
from gpulab.features.goodput.marks import is_of_the_program
from gpulab.features.goodput.trace import Trace
from gpulab.stats.time_spans import clip, measure, union

_EVERY_S = 1e-3
_MOST_LINES = 40
_LEAST = 0.01
"""Of the step: a line with less is not kept."""
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>")


class Place(NamedTuple):
    """A place in the program: `line` such as train.py:42, its expression, and what it is in."""

    line: str
    function: str
    source: str
    outermost: bool


class _Sample(NamedTuple):
    """Seconds on the host's clock from the sample before it; `place` is None outside the
    program.
    """

    start: float
    end: float
    ran_s: float
    taken_s: float | None
    place: Place | None


class Sampler:
    """Samples the main thread while something runs. Only the main thread may use it."""

    def __init__(self) -> None:
        self.samples: list[_Sample] = []
        self.started = 0.0
        self._places: dict[tuple[CodeType, int, bool], Place] = {}

    def run(self, function: Callable[[], object]) -> None:
        """Run it, with a sample each millisecond of it."""
        self._scheduler = _open_scheduler()
        before = signal.signal(signal.SIGALRM, self._tick)
        signal.siginterrupt(signal.SIGALRM, False)  # a library's system call goes on
        self._samples = True
        try:
            self.started = perf_counter()
            self._arm()
            function()
        finally:
            self._samples = False  # a tick that is on its way must not arm the timer again
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # which drops one that is pending
            signal.signal(signal.SIGALRM, before)
            if self._scheduler is not None:
                os.close(self._scheduler)

    def _arm(self) -> None:
        self._taken_s = self._taken()
        self._ran_s = thread_time()
        self._at = perf_counter()
        signal.setitimer(signal.ITIMER_REAL, _EVERY_S)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        now = perf_counter()
        ran_s = thread_time() - self._ran_s
        taken_s = self._taken()
        if taken_s is not None and self._taken_s is not None:
            taken_s -= self._taken_s
        self.samples.append(_Sample(self._at, now, ran_s, taken_s, self._place(frame)))
        if self._samples:
            self._arm()

    def _taken(self) -> float | None:
        """Seconds in which this thread could have run, and others did; None where nobody counts."""
        if self._scheduler is None:
            return None
        return int(os.pread(self._scheduler, 128, 0).split()[1]) * 1e-9

    def _place(self, frame: FrameType | None) -> Place | None:
        inner = None
        while frame is not None:
            if is_of_the_program(frame.f_code.co_filename):
                if inner is not None:
                    break
                inner = frame
                if frame.f_code.co_name in _COMPREHENSIONS:
                    frame = frame.f_back
            frame = frame.f_back if frame else None
        if inner is None:
            return None
        key = inner.f_code, inner.f_lasti, frame is None
        if key not in self._places:
            self._places[key] = _place(inner, outermost=frame is None)
        return self._places[key]


def _open_scheduler() -> int | None:
    """Open the scheduler's figures of this thread; None where there is none."""
    with suppress(OSError):
        opened = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        if len(os.pread(opened, 128, 0).split()) > 1:
            return opened
        os.close(opened)
    return None


def _place(frame: FrameType, *, outermost: bool) -> Place:
    code = frame.f_code
    name = code.co_qualname.replace(".<locals>", "")
    for part in _COMPREHENSIONS:
        name = name.removesuffix(f".{part}")
    line = f"{Path(code.co_filename).name}:{frame.f_lineno}"
    return Place(line, name, _expression(code, frame), outermost)


def _expression(code: CodeType, frame: FrameType) -> str:
    """The source of what a frame evaluates, on one line; empty where it is not known."""
    text = linecache.getline(code.co_filename, frame.f_lineno)
    positions = list(code.co_positions())
    index = frame.f_lasti // 2
    if 0 <= index < len(positions):
        first, last, start, end = positions[index]
        if first == last == frame.f_lineno and None not in (start, end):
            with suppress(UnicodeDecodeError):
                text = text.encode()[start:end].decode()
    return cut(" ".join(text.split()), 60)


def lines_of(sampler: Sampler, trace: Trace, plain_s: float) -> list[LineTime]:
    """The lines that take most of what was recorded meanwhile, as shares of the time in which its
    thread ran or waited. `plain_s` is what the thread ran in the same steps without the profiler:
    what recording an operation takes longer is no line's.
    """
    operations = sorted(event.span for event in trace.inside(trace.operations.get(trace.main, [])))
    starts = [start for start, _ in operations]
    busy = union(operations)
    busy_starts = [start for start, _ in busy]
    ran_s = sum(sample.ran_s for sample in sampler.samples)
    recording_s = max(0.0, ran_s - plain_s) / max(1, len(operations))
    running: dict[Place, float] = defaultdict(float)
    waiting: dict[Place, float] = defaultdict(float)
    total_s = 0.0
    for sample in sampler.samples:
        start, end = sample.start - sampler.started, sample.end - sampler.started
        count = bisect_left(starts, end) - bisect_left(starts, start)
        cost_s = min(sample.ran_s, count * recording_s)
        near = busy[max(0, bisect_left(busy_starts, start) - 1) : bisect_left(busy_starts, end)]
        inside_s = measure(clip(near, start, end))
        waited_s = 0.0
        if sample.taken_s is not None:
            waited_s = max(0.0, end - start - sample.ran_s - sample.taken_s)
        total_s += sample.ran_s - cost_s + waited_s
        if sample.place is None:
            continue
        running[sample.place] += max(0.0, sample.ran_s - cost_s - inside_s)
        waiting[sample.place] += waited_s
    if not total_s:
        return []
    lines = [
        LineTime(
            line=place.line,
            function=place.function,
            source=place.source,
            running=min(1.0, running[place] / total_s),
            waiting=min(1.0, waiting[place] / total_s),
            outermost=place.outermost,
        )
        for place in running
    ]
    kept = [each for each in lines if each.running + each.waiting >= _LEAST]
    kept.sort(key=lambda each: -each.running - each.waiting)
    return kept[:_MOST_LINES]
