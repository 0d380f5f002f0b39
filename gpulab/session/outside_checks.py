"""Checks of a worker that are made in the session's process: of its clock by this one's, of outputs by plain Python.

A scenario runs in the worker's process, and may replace there what it is judged by. Nothing of it runs here.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from math import sqrt
from time import monotonic

from gpulab.protocol.events import AnyEvent, Examined, OutputSample, Stopped, TimerBracket
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import AnyJob, subject_of
from gpulab.protocol.statuses import CheckKind

_SHARE, _LATENCY_S = 0.1, 0.01
"""By what part of a stretch the two clocks may differ, and by what an event may be read late."""
_ENOUGH_S = 0.05
"""A shorter stretch would drown in that."""
_MOST_STRETCHES, _MOST_SAMPLES = 1 << 8, 1 << 8
"""That are open, or wait for their counterpart: a worker may send as many as it likes."""
_MOST_TOLERANCE = 0.25
"""Relative error of all elements together that no dtype has, whoever names it."""
_INFINITE = 1e30
_FEW, _MANY = 10, 2
"""Times the tolerance that the elements of one output, and of all outputs, may be off: they are a sample."""


@dataclass
class _Stretches:
    """Of one variant: how many its clock timed, and the one in which it was least off: events may be read late."""

    count: int = 0
    seen_s: float = 0.0
    claimed_s: float = 0.0

    @property
    def off(self) -> float:
        return abs(self.seen_s - self.claimed_s) - _LATENCY_S - _SHARE * self.seen_s


@dataclass
class _Outputs:
    """Of one variant: how many outputs were compared, the squares of all differences, and what was allowed."""

    count: int = 0
    squares: float = 0.0
    total: float = 0.0
    allowed: float = 0.0
    reason: Finding | None = None

    @property
    def error(self) -> float:
        """The relative error of all elements together."""
        return min(sqrt(self.squares / self.total), _INFINITE) if self.total else _INFINITE * bool(self.squares)


class OutsideChecks:
    """Of one job: `see` every event as it is read."""

    def __init__(self, job: AnyJob) -> None:
        subject = subject_of(job)
        self._baseline = subject.variants[0].name if subject and subject.variants else None
        self._opened: dict[tuple[str, int], float] = {}
        """When the first event of a stretch was read."""
        self._stretches: dict[str, _Stretches] = {}
        self._expected: OrderedDict[int, OutputSample] = OrderedDict()
        """The baseline's samples, by the number of the values that they are for."""
        self._outputs: dict[str, _Outputs] = {}

    def see(self, event: AnyEvent) -> list[Examined]:
        """What both checks showed, once measuring has stopped."""
        if isinstance(event, TimerBracket):
            self._see_bracket(event)
        elif isinstance(event, OutputSample):
            self._see_sample(event)
        return self.results() if isinstance(event, Stopped) else []

    def results(self) -> list[Examined]:
        """What both checks showed since they were asked last, of every variant that they saw."""
        stretches = [self._of_stretches(name, stretches) for name, stretches in self._stretches.items()]
        outputs = [self._of_outputs(name, outputs) for name, outputs in self._outputs.items()]
        self._stretches, self._outputs = {}, {}
        return [*stretches, *outputs]

    def _see_bracket(self, event: TimerBracket) -> None:
        key, now = (event.variant, event.number), monotonic()
        if event.claimed_s is None:
            if len(self._opened) < _MOST_STRETCHES:
                self._opened[key] = now
            return
        started = self._opened.pop(key, None)
        if started is None or now - started < _ENOUGH_S:
            return
        known = self._stretches.setdefault(event.variant, _Stretches())
        latest = _Stretches(known.count + 1, now - started, event.claimed_s)
        better = latest if not known.count or latest.off < known.off else known
        self._stretches[event.variant] = _Stretches(latest.count, better.seen_s, better.claimed_s)

    @staticmethod
    def _of_stretches(name: str, stretches: _Stretches) -> Examined:
        values = {"seen_s": stretches.seen_s, "claimed_s": stretches.claimed_s}
        reason = finding("clock_disagrees", name, **values) if stretches.off > 0 else None
        return Examined(
            variant=name,
            check=CheckKind.TIMER,
            ok=reason is None,
            count=stretches.count,
            values={**values},
            reason=reason,
        )

    def _see_sample(self, event: OutputSample) -> None:
        if event.variant == self._baseline:
            self._expected[event.number] = event
            if len(self._expected) > _MOST_SAMPLES:
                self._expected.popitem(last=False)
            return
        expected = self._expected.get(event.number)
        if expected is None:
            return
        outputs = self._outputs.setdefault(event.variant, _Outputs())
        outputs.count += 1
        outputs.allowed = max(outputs.allowed, min(event.tolerance, _MOST_TOLERANCE))
        difference = _difference(event, expected)
        if difference is not None:
            squares, total = difference
            outputs.squares += squares
            outputs.total += total
            if sqrt(squares) <= _FEW * outputs.allowed * sqrt(total) and outputs.error <= _MANY * outputs.allowed:
                return
        error = outputs.error if difference is not None and outputs.error < _INFINITE else None
        outputs.reason = finding("outputs_differ_outside", event.variant, error=error, allowed=outputs.allowed)

    @staticmethod
    def _of_outputs(name: str, outputs: _Outputs) -> Examined:
        return Examined(
            variant=name,
            check=CheckKind.OUTSIDE,
            ok=outputs.reason is None,
            count=outputs.count,
            wrong=True,
            values={"error": outputs.error, "allowed": outputs.allowed},
            reason=outputs.reason,
        )


def _difference(sample: OutputSample, expected: OutputSample) -> tuple[float, float] | None:
    """(squares of the differences, squares of the baseline's elements); None where they cannot be compared."""
    if sample.elements != expected.elements or sample.places != expected.places:
        return None
    if len(sample.values) != len(sample.places) or len(expected.values) != len(expected.places):
        return None
    squares = total = 0.0
    for actual, wanted in zip(sample.values, expected.values, strict=True):
        if actual is None or wanted is None:
            if actual is not wanted:
                return None
            continue
        squares += (actual - wanted) ** 2
        total += wanted**2
    return squares, total
