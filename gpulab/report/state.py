"""The state of a run: made of nothing but its events, in time linear in their number, in memory
that is bounded.

A replayed file, a live run and a test go through the same states. Events are kept by their type;
what features keep of them is in their records.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from gpulab.core.events import (
    Built,
    Checked,
    Event,
    Examined,
    FindingMade,
    Log,
    OtherClock,
    OutOfMemory,
    ProcessStarted,
    Reported,
    RunEnded,
    RunInvalid,
    RunStarted,
    Samples,
    StageStarted,
    Stopped,
    Unchecked,
    VariantEvent,
    VariantFailed,
    VariantRefused,
    VariantSkipped,
    WorkerReady,
)
from gpulab.core.findings import Finding
from gpulab.core.jobs import Calibrate, Follow, RunRequest, TimedJob, TimeFunctions, VariantInfo
from gpulab.core.limits import KEPT_LINES
from gpulab.core.machine import Device
from gpulab.core.readable import readable
from gpulab.core.statuses import CheckKind, FailureKind, IntervalUnit, Outcome, Stage, Status
from gpulab.report.findings import checked_in_its_own_run, declared_unchecked, plain_function
from gpulab.report.samples import SampleState
from gpulab.stats.comparison import keys_of

if TYPE_CHECKING:
    from gpulab.report.feature import Feature

E = TypeVar("E", bound=Event)
Part = TypeVar("Part")


@dataclass(frozen=True)
class Keep:
    """A limit of the events of a type in a state: the latest `most`, for each key `by` separately;
    `merge` makes one event of two.
    """

    most: int = 1
    by: Callable[[Any], Hashable] | None = None
    merge: Callable[[Any, Any], Any] | None = None


def _merged_clocks(before: OtherClock, event: OtherClock) -> OtherClock:
    """The times of one process together with those of the others."""
    return replace(
        event,
        times_s=[*before.times_s, *event.times_s][-_MOST_TIMES:],
        exposed=before.exposed or event.exposed,
        sm_mhz=[*before.sm_mhz, *event.sm_mhz][-_MOST_TIMES:],
    )


_MOST_TIMES = 1000
_EVERY = Keep(sys.maxsize)
_KEEPS: Mapping[type[Event], Keep] = {
    StageStarted: Keep(200),
    ProcessStarted: _EVERY,
    VariantFailed: _EVERY,
    FindingMade: _EVERY,
    RunInvalid: Keep(by=lambda event: str(event.reason)),  # each process says it
    Reported: Keep(by=attrgetter("variant", "name")),
    OtherClock: Keep(by=attrgetter("clock"), merge=_merged_clocks),
}
"""Of all other types the last event."""


class KeptEvents:
    """Events by their type, of each type what its `Keep` says."""

    def __init__(self, keeps: Mapping[type[Event], Keep]) -> None:
        self._keeps = keeps
        self._events: dict[tuple[type[Event], Hashable], list[Any]] = {}

    def keep(self, event: Event) -> None:
        keep = self._keeps.get(type(event))
        if keep is None:
            self._events[type(event), None] = [event]
            return
        key = type(event), keep.by(event) if keep.by else None
        events = self._events.setdefault(key, [])
        if keep.merge and events:
            event = keep.merge(events[-1], event)
        events.append(event)
        del events[: -keep.most]

    def last(self, kind: type[E], key: Hashable = None) -> E | None:
        """The last event of a type, with this key where the type has one."""
        events = self._events.get((kind, key))
        return events[-1] if events else None

    def all(self, kind: type[E]) -> list[E]:
        """All that are kept of a type, by their keys."""
        kept: list[E] = []
        for (other, _), events in self._events.items():
            if other is kind:
                kept += events
        return kept

    def _copied(self) -> Any:
        copied = copy(self)
        copied._events = {key: list(events) for key, events in self._events.items()}
        return copied


_OUTER_FAILURES = frozenset({FailureKind.CANCELLED, FailureKind.TIMEOUT})
"""Failures of a run that are no failure of the variant being measured."""


class VariantState(KeptEvents):
    """One variant so far. Sums are over its timed blocks."""

    def __init__(
        self, info: VariantInfo, keeps: Mapping[type[Event], Keep], *, functions: bool
    ) -> None:
        super().__init__(keeps)
        self.info = info
        self.status = Status.SKIPPED if info.missing else Status.PENDING
        self.reason: Finding | None = info.missing
        self.unchecked = _unchecked(info, functions=functions)
        self.blocks = 0
        self.faults = 0
        self.switches = 0
        self.wall_s = 0.0
        self.cpu_s = 0.0
        self.sm_mhz = 0.0

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def judged(self) -> bool:
        """Return whether something is wrong with it already."""
        return self.status not in (Status.PENDING, Status.OK)

    @property
    def failure(self) -> VariantFailed | None:
        """The first one."""
        return next(iter(self.all(VariantFailed)), None)

    @property
    def items(self) -> float:
        """Return the items of a step; 1 where it declares none."""
        built = self.last(Built)
        return built.items if built else 1.0

    @property
    def contention(self) -> float | None:
        """Share of the timed wall time in which the measuring thread did not run."""
        if not self.wall_s:
            return None
        return max(0.0, 1 - self.cpu_s / self.wall_s)

    def keep(self, event: Event) -> None:
        super().keep(event)
        match event:
            case Checked(ok=False):
                self._set(Status.WRONG, event.reason)
            case Unchecked():
                self.unchecked = event.reason
            case VariantRefused():
                self._set(Status.INVALID, event.reason)
            case VariantSkipped():
                self._set(Status.SKIPPED, event.reason)
            case OutOfMemory():
                self._set(Status.OUT_OF_MEMORY, event.cause)
            case VariantFailed():
                if self.status == Status.PENDING and event.kind not in _OUTER_FAILURES:
                    self._set(Status.FAILED, event.cause)
            case Examined(ok=False):
                # Null answers that pass make a comparison inconclusive, but not the variant wrong.
                if event.check != CheckKind.NULL_ANSWERS and not self.judged:
                    self._set(Status.WRONG if event.wrong else Status.INVALID, event.reason)

    def _set(self, status: Status, reason: Finding | None) -> None:
        self.status = status
        self.reason = reason


def _unchecked(info: VariantInfo, *, functions: bool) -> Finding | None:
    """Why the output of a variant will not be compared, as far as that is known beforehand."""
    if functions:
        return plain_function(info.name)
    if info.unchecked is not None:
        return declared_unchecked(info.name, reason=info.unchecked)
    if info.is_point:
        return checked_in_its_own_run(info.name)
    return None


class LogState:
    def __init__(self) -> None:
        self.head: list[str] = []
        self.tail: deque[str] = deque(maxlen=KEPT_LINES)
        self.skipped = 0

    @property
    def count(self) -> int:
        """Lines so far, those left out too."""
        return len(self.head) + self.skipped + len(self.tail)

    def add(self, event: Log) -> None:
        self.skipped += event.skipped
        room = KEPT_LINES - len(self.head)
        self.head += event.lines[:room]
        later = event.lines[room:]
        self.skipped += max(0, len(self.tail) + len(later) - KEPT_LINES)
        self.tail.extend(later)


class RunState(KeptEvents):
    """One run so far."""

    def __init__(self, features: Iterable[Feature]) -> None:
        keeps = dict(_KEEPS)
        self._folds = {kind: [fold] for kind, fold in _FOLDS.items()}
        for feature in features:
            keeps |= feature.keeps
            for kind, fold in feature.folds.items():
                self._folds.setdefault(kind, []).append(fold)
        super().__init__(keeps)
        self._parts: dict[type, Any] = {}
        self.variants: dict[str, VariantState] = {}
        self.samples = SampleState(())
        self.log = LogState()
        self.over = False
        """Whether no more events will come."""
        self.t = 0.0

    def part(self, kind: type[Part]) -> Part:
        """A feature's own part of the state."""
        if kind not in self._parts:
            self._parts[kind] = kind()
        part: Part = self._parts[kind]
        return part

    @property
    def request(self) -> RunRequest | None:
        started = self.last(RunStarted)
        return started.request if started else None

    @property
    def job(self) -> TimedJob | Calibrate | Follow | None:
        return self.request.job if self.request else None

    @property
    def timed_job(self) -> TimedJob | None:
        """The job, where it is one that times variants."""
        job = self.job
        return job if isinstance(job, TimedJob) else None

    @property
    def device(self) -> Device | None:
        ready = self.last(WorkerReady)
        return ready.device if ready else None

    @property
    def on_gpu(self) -> bool:
        return self.device is not None and self.device.on_gpu

    @property
    def baseline(self) -> VariantState | None:
        return next(iter(self.variants.values()), None)

    @property
    def stage(self) -> Stage:
        started = self.last(StageStarted)
        return started.stage if started else Stage.START

    @property
    def outcome(self) -> Outcome | None:
        """None until it has ended."""
        ended = self.last(RunEnded)
        return ended.outcome if ended else None

    @property
    def failures(self) -> list[VariantFailed]:
        return self.all(VariantFailed)

    @property
    def invalid(self) -> list[Finding]:
        """Why none of the verdicts holds."""
        return [event.reason for event in self.all(RunInvalid)]

    @property
    def unit(self) -> IntervalUnit:
        """Return the unit of intervals: an epoch counts as a process where processes were not
        recorded.
        """
        processes = self.last(ProcessStarted)
        return IntervalUnit.PROCESSES if processes else IntervalUnit.EPOCH_MEDIANS

    def fold(self, event: Event) -> None:
        """Fold one event; its texts are made safe first, so that none can forge a line."""
        if not isinstance(event, Samples):  # of which there are many, with names alone
            event = readable(event)
        self.t = event.t
        self.keep(event)
        for fold in self._folds.get(type(event), ()):
            fold(self, event)
        # Samples wait no longer than this for a telemetry reading: a driver may hang. Readings
        # are 0.2 s apart and looks at processes 2 s, so no driver that works comes near it.
        self.samples.settle(max(self.samples.final_until, self.t - 60.0))

    def keep(self, event: Event) -> None:
        """Keep an event in its variant, whose status it may change, or else in the run."""
        variant = None
        if isinstance(event, (VariantEvent, Examined, VariantFailed)):
            variant = self.variants.get(event.variant or "")
        if variant:
            variant.keep(event)
        if variant is None or isinstance(event, VariantFailed):
            super().keep(event)

    def copy_for_report(self) -> RunState:
        """A copy to which a report may add events of variants without changing this state."""
        copied: RunState = self._copied()
        copied.variants = {name: variant._copied() for name, variant in self.variants.items()}
        return copied

    def closed(self) -> RunState:
        """A copy that counts as ended: a run that ended early keeps its complete pairs."""
        copied = copy(self)  # reports change nothing but samples
        copied.samples = deepcopy(self.samples)
        copied._close()
        copied.samples.settle(inf)
        return copied

    def _close(self) -> None:
        self.over = True
        self.samples.close()
        self.samples.final_until = inf

    def _start(self, event: RunStarted) -> None:
        job = event.request.job
        if isinstance(job, Calibrate):
            return
        functions = isinstance(job, TimeFunctions)
        self.variants = {
            info.name: VariantState(info, self._keeps, functions=functions)
            for info in job.subject.variants
        }
        if isinstance(job, TimedJob):
            self.samples = SampleState(keys_of(job))
        else:
            self.samples = SampleState([(name,) for name in self.variants])

    def _add_samples(self, event: Samples) -> None:
        # the control has no build in the events: it has the items of the baseline
        items = self.baseline.items if self.baseline else 1.0
        variants = [self.variants.get(name) for name in event.names]
        divisors = [variant.items if variant else items for variant in variants]
        self.samples.add(event, dict(zip(event.names, divisors, strict=True)))
        has_clocks = bool(event.sm_mhz)
        for place, index in enumerate(event.variant):
            if variant := variants[index]:
                variant.blocks += 1
                variant.wall_s += event.times_s[place]
                variant.cpu_s += event.cpu_s[place]
                variant.faults += event.faults[place]
                variant.switches += event.switches[place]
                if has_clocks:
                    variant.sm_mhz += event.sm_mhz[place]


_FOLDS: Mapping[type[Event], Callable[[RunState, Any], None]] = {
    RunStarted: RunState._start,
    ProcessStarted: lambda state, event: state.samples.first_epochs.append(event.epoch),
    Samples: RunState._add_samples,
    Log: lambda state, event: state.log.add(event),
    Stopped: lambda state, _: state.samples.close(),
    RunEnded: lambda state, _: state._close(),
}
"""Folds of the core; those of features come after them."""
