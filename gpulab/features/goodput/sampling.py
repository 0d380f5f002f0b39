"""Where the main thread is, by samples: which line of the program runs outside of torch's
operations, and which waits.

A timer's handler runs between two bytecodes: after a call that takes long, at the line of the call.
Each tick that came due since the sample before is that line's, unless it fell into an operation
that the profiler recorded. Not the time since that sample: json of 0.85 ms in a step of 2.1 ms was
then booked to lines after it. The scheduler says how much of the time the thread ran, and how much
it could have run while others did; what is left it slept or waited.
"""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, thread_time
from types import FrameType
from typing import Any, NamedTuple

from gpulab.core.payloads import TRACE_PREFIX
from gpulab.engine.build.lab import recorded
from gpulab.features.goodput.events import LineTime
from gpulab.features.goodput.marks import is_of_a_package, is_of_the_program
from gpulab.proc.stack_reader import read_from_outside
from gpulab.proc.stacks import Stacks
from gpulab.stats.time_spans import contains, union
from gpulab.traces.trace import Trace

_EVERY_S = 0.97e-3
_MOST_LINES = 40
_LEAST = 0.01
"""Of the step: a line with less is not kept."""
_WAITS = 0.5
_STARTED = f"{TRACE_PREFIX}sampled"
"""A mark by which the clock of the samples is put on that of the recording."""
_WITHIN = re.compile(r"\.<\w+>")
"""Of the name of a comprehension, and of what stands within a function."""


class Place(NamedTuple):
    """A line of the program, such as train.py:42, and the function that it is in."""

    line: str
    function: str


class _Sample(NamedTuple):
    """Seconds on the host's clock from the sample before it; `place` is None outside the
    program.
    """

    start: float
    end: float
    ran_s: float
    taken_s: float | None
    place: Place | None


def taken_s() -> float | None:
    """Seconds in which this thread could have run so far, and others did; None where nobody counts
    them.
    """
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * 1e-9
    return None


class Sampler:
    """Samples the main thread while something runs. Only the main thread may use it."""

    def __init__(self) -> None:
        self.samples: list[_Sample] = []
        self._stacks: Stacks | None = None
        self.started = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Take a sample each millisecond."""
        with read_from_outside() as self._stacks:
            before = signal.signal(signal.SIGALRM, self._tick)
            signal.siginterrupt(signal.SIGALRM, False)  # a library's system call goes on
            try:
                with recorded(_STARTED):
                    self.started = perf_counter()
                self._begin()
                signal.setitimer(signal.ITIMER_REAL, _EVERY_S, _EVERY_S)
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_IGN)  # which drops one that is pending
                signal.signal(signal.SIGALRM, before)

    def _begin(self) -> None:
        self._taken_s = taken_s()
        self._ran_s = thread_time()
        self._at = perf_counter()

    def _tick(self, number: int, frame: FrameType | None) -> None:
        now = perf_counter()
        seen = self._stacks.take(frame) if self._stacks is not None else []
        if not seen and self._stacks is not None and self._stacks.is_awaited(now - self._at):
            return
        ran_s = thread_time() - self._ran_s
        others_s = taken_s()
        if others_s is not None and self._taken_s is not None:
            others_s -= self._taken_s
        # from 3.10 on this runs after calls and jumps, not where an operator was
        place = _place(seen[-1] if seen else frame)
        self.samples.append(_Sample(self._at, now, ran_s, others_s, place))
        self._begin()


def _place(frame: Any) -> Place | None:
    """Return the innermost place in the program's own files, else that in a package."""
    in_package = None
    while frame is not None:
        code = frame.f_code
        if is_of_the_program(code.co_filename):
            line = f"{Path(code.co_filename).name}:{frame.f_lineno}"
            place = Place(line, _WITHIN.sub("", code.co_qualname))
            if not is_of_a_package(code.co_filename):
                return place
            in_package = in_package or place
        frame = frame.f_back
    return in_package


def lines_of(sampler: Sampler, trace: Trace, plain_s: float) -> list[LineTime]:
    """The lines that take most of what was recorded meanwhile, as shares of the time in which its
    thread ran or waited. `plain_s` is what the thread ran in the same steps without the profiler:
    what recording an operation takes longer is no line's.
    """
    marks = (event for event in trace.annotations if event.name == _STARTED)
    origin = max((mark.end for mark in marks), default=0.0)
    operations = union(event.span for event in trace.inside(trace.operations.get(trace.main, [])))
    count = len(trace.operations.get(trace.main, []))
    ran_s = sum(sample.ran_s for sample in sampler.samples)
    recording_s = max(0.0, ran_s - plain_s) / max(1, count)
    recorded = union((start - recording_s / 2, end + recording_s / 2) for start, end in operations)
    running: dict[Place, int] = defaultdict(int)
    waiting: dict[Place, int] = defaultdict(int)
    ticks = 0
    for sample in sampler.samples:
        due = [origin + tick for tick in _due(sample, sampler.started)]
        free = [tick for tick in due if not contains(recorded, tick)]
        ticks += len(free) + sum(contains(operations, tick) for tick in due)
        if sample.place is not None:
            found = waiting if _waited(sample) else running
            found[sample.place] += len(free)
    if not ticks:
        return []
    lines = [
        LineTime(
            line=place.line,
            function=place.function,
            running=running[place] / ticks,
            waiting=waiting[place] / ticks,
        )
        for place in {**running, **waiting}
    ]
    kept = [each for each in lines if each.running + each.waiting >= _LEAST]
    kept.sort(key=lambda each: -each.running - each.waiting)
    return kept[:_MOST_LINES]


def _due(sample: _Sample, started: float) -> list[float]:
    """Return when the timer came due since the sample before, less what others took of it."""
    first, last = (int((at - started) / _EVERY_S) for at in (sample.start, sample.end))
    taken = round((sample.taken_s or 0.0) / _EVERY_S)
    return [tick * _EVERY_S for tick in range(first + 1 + taken, last + 1)]


def _waited(sample: _Sample) -> bool:
    """Return whether the thread slept or waited for most of the time; not, where nobody counts."""
    if sample.taken_s is None:
        return False
    passed_s = sample.end - sample.start - sample.taken_s
    return passed_s - sample.ran_s > _WAITS * passed_s
