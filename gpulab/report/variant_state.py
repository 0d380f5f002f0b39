"""The state of one variant of a run: made of its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from msgspec.structs import replace

from gpulab.protocol import events as e
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import VariantInfo
from gpulab.protocol.kernels import KernelCode
from gpulab.protocol.statuses import CheckKind, Clock, FailureKind, Status
from gpulab.report.examined import add_examined

VariantEvent = (
    e.Built
    | e.Counted
    | e.Phases
    | e.Profiled
    | e.Checked
    | e.Unchecked
    | e.VariantRefused
    | e.VariantSkipped
    | e.OutOfMemory
    | e.Calibrated
    | e.WarmedUp
    | e.AloneRun
    | e.SoloRun
    | e.OtherClock
    | e.FirstSteps
    | e.MemoryUsed
    | e.KernelsCompiled
    | e.Tuned
)
"""Events that are of one variant alone."""
_FROM_OUTSIDE = frozenset({FailureKind.CANCELLED, FailureKind.TIMEOUT})
"""Ends of a run that say nothing about the variant that was on the clock."""
_MOST_OTHER_TIMES = 1000
_MOST_FIRST_STEPS = 100
_MOST_ALONE = 1000
CHECKED_ELSEWHERE = "checked_in_its_own_run"
"""Of a contender of a sweep's final: with other parameters than the first it has another output."""


@dataclass
class VariantState:
    """One variant so far. Sums are over its timed blocks."""

    info: VariantInfo
    status: Status = Status.PENDING
    reason: Finding | None = None
    unchecked: Finding | None = None
    built: e.Built | None = None
    counted: e.Counted | None = None
    phases: e.Phases | None = None
    """The windows so far as one."""
    profiled: e.Profiled | None = None
    checked: e.Checked | None = None
    calibrated: e.Calibrated | None = None
    warmed: e.WarmedUp | None = None
    solo_run: e.SoloRun | None = None
    alone: list[e.AloneRun] = field(default_factory=list)
    """Of each process in which it was built first, of a long run the first ones."""
    examined: dict[CheckKind, e.Examined] = field(default_factory=dict)
    """What each kind of check showed, all its events as one: the first that failed, and how often it ran."""
    other_clocks: dict[Clock, e.OtherClock] = field(default_factory=dict)
    first_steps: list[e.FirstSteps] = field(default_factory=list)
    """Of each process that took them, of a long run the latest."""
    memory: e.MemoryUsed | None = None
    kernels: list[KernelCode] = field(default_factory=list)
    tuned: e.Tuned | None = None
    failure: e.VariantFailed | None = None
    out_of_memory: e.OutOfMemory | None = None
    blocks: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    faults: int = 0
    switches: int = 0
    sm_mhz: float = 0.0

    @property
    def items(self) -> float:
        return self.built.items if self.built else 1.0

    @property
    def contention(self) -> float | None:
        """Share of the timed wall time in which the measuring thread did not run."""
        return max(0.0, 1 - self.cpu_s / self.wall_s) if self.wall_s else None

    def fold(self, event: VariantEvent) -> None:
        """Take one more of its events in."""
        match event:
            case e.Built():
                self.built = event
            case e.Counted():
                self.counted = event
            case e.Phases():
                self.phases = _added(self.phases, event)
            case e.Profiled():
                self.profiled = event
            case e.Calibrated():
                self.calibrated = event
            case e.WarmedUp():
                self.warmed = event
            case e.OtherClock():
                self.other_clocks[event.clock] = _with_other_clock(self.other_clocks.get(event.clock), event)
            case e.FirstSteps():
                self.first_steps = [*self.first_steps, event][-_MOST_FIRST_STEPS:]
            case e.MemoryUsed():
                self.memory = event
            case e.KernelsCompiled():
                self.kernels = event.kernels
            case e.Tuned():
                self.tuned = self.tuned or event
            case e.AloneRun():
                self.alone += [event] if len(self.alone) < _MOST_ALONE else []
            case e.SoloRun():
                self.solo_run = event
            case e.Checked():
                self.checked = event
                if not event.ok:
                    self.status, self.reason = Status.WRONG, event.reason
            case e.Unchecked():
                self.unchecked = event.reason
            case e.VariantRefused():
                self.status, self.reason = Status.INVALID, event.reason
            case e.VariantSkipped():
                self.status, self.reason = Status.SKIPPED, event.reason
            case e.OutOfMemory():
                self.status, self.reason, self.out_of_memory = Status.OUT_OF_MEMORY, event.cause, event
            case _:
                assert_never(event)

    def fail(self, event: e.VariantFailed) -> None:
        if self.failure is None:
            self.failure = event
        if self.status == Status.PENDING and event.kind not in _FROM_OUTSIDE:
            self.status, self.reason = Status.FAILED, event.cause

    def examine(self, event: e.Examined) -> None:
        add_examined(self.examined, event)
        # Where nothing could be told apart, nothing is claimed; but nobody is accused.
        accused = not event.ok and event.check != CheckKind.NULL_ANSWERS
        if accused and self.status in (Status.PENDING, Status.OK):
            self.status, self.reason = (Status.WRONG if event.wrong else Status.INVALID), event.reason


def initial(info: VariantInfo, *, functions: bool) -> VariantState:
    """A variant before anything of it is known."""
    unchecked = None if info.unchecked is None else finding("declared_unchecked", info.name, reason=info.unchecked)
    if functions:
        unchecked = finding("plain_function", info.name)
    elif unchecked is None and info.function is not None:
        unchecked = finding("checked_in_its_own_run", info.name)
    if info.missing is not None:
        return VariantState(info, status=Status.SKIPPED, reason=info.missing, unchecked=unchecked)
    return VariantState(info, unchecked=unchecked)


def _added(before: e.Phases | None, event: e.Phases) -> e.Phases:
    """One window together with those before it."""
    if before is None:
        return event
    return replace(
        event,
        steps=before.steps + event.steps,
        seconds=_sums(before.seconds, event.seconds),
        running_s=_sums(before.running_s, event.running_s),
    )


def _with_other_clock(before: e.OtherClock | None, event: e.OtherClock) -> e.OtherClock:
    """The times of one process together with those of the others, of a long run the latest."""
    if before is None:
        return event
    times_s = [*before.times_s, *event.times_s][-_MOST_OTHER_TIMES:]
    return replace(event, times_s=times_s, exposed=before.exposed or event.exposed)


def _sums(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}
