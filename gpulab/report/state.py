"""The state of a run: made of nothing but its events, in time linear in their number, in memory that is bounded.

A replayed file, a live run and a test go through the same states.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import assert_never

from msgspec.structs import replace

from gpulab.analysis.comparison import keys_of
from gpulab.protocol import events as e
from gpulab.protocol.ceiling import LAUNCH
from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import TELEMETRY_OFF, Calibrate, RunRequest, TimedJob, TimeFunctions, VariantInfo
from gpulab.protocol.statuses import CheckKind, FailureKind, IntervalUnit, Outcome, Stage, Status, StopReason
from gpulab.report.examined import together
from gpulab.report.log_history import LogHistory
from gpulab.report.samples import SampleHistory
from gpulab.report.telemetry_history import TelemetryHistory

_FROM_OUTSIDE = frozenset({FailureKind.CANCELLED, FailureKind.TIMEOUT})
"""Ends of a run that say nothing about the variant that was on the clock."""
_MOST_OTHER_TIMES = 1000
_MOST_ROOFS = 1000


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
    examined: dict[CheckKind, e.Examined] = field(default_factory=dict)
    """What each kind of check showed, all its events as one: the first that failed, and how often it ran."""
    other_clock: e.OtherClock | None = None
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


@dataclass
class RunState:
    """One run so far; `outcome` is None until it has ended."""

    request: RunRequest | None = None
    device: Device | None = None
    environment: dict[str, str | None] = field(default_factory=dict)
    stage: Stage = Stage.START
    stage_variant: str | None = None
    stage_detail: str | None = None
    variants: dict[str, VariantState] = field(default_factory=dict)
    planned: e.Planned | None = None
    samples: SampleHistory = field(default_factory=lambda: SampleHistory(()))
    stopped: StopReason | None = None
    failures: list[e.VariantFailed] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    explanations: list[Finding] = field(default_factory=list)
    ceilings: e.CeilingsMeasured | None = None
    roofs_probed: list[e.RoofProbed] = field(default_factory=list)
    """Of every process that measured, of a long run the latest."""
    figures: dict[tuple[str | None, str], float | None] = field(default_factory=dict)
    log: LogHistory = field(default_factory=LogHistory)
    telemetry: TelemetryHistory = field(default_factory=TelemetryHistory)
    processes: list[e.ProcessStarted] = field(default_factory=list)
    """Those that measured, in their order; none in files from before they were recorded."""
    examined: dict[CheckKind, e.Examined] = field(default_factory=dict)
    """Checks of the whole run: see `VariantState.examined`."""
    invalid: list[Finding] = field(default_factory=list)
    """Why none of the verdicts holds."""
    earlier: e.EarlierRuns | None = None
    outcome: Outcome | None = None
    at: str = ""
    """When it started: UTC, ISO 8601."""
    host: str = ""
    started_t: float = 0.0
    t: float = 0.0

    @property
    def job(self) -> TimedJob | Calibrate | None:
        return self.request.job if self.request else None

    @property
    def timed_job(self) -> TimedJob | None:
        """The job, where it is one that times variants."""
        job = self.job
        return job if isinstance(job, TimedJob) else None

    @property
    def unit(self) -> IntervalUnit:
        """What intervals are over: an epoch counts as a process where processes were not recorded."""
        return IntervalUnit.PROCESSES if self.processes else IntervalUnit.EPOCH_MEDIANS

    def fold(self, event: e.AnyEvent) -> None:
        """Take one more event in."""
        self.t = event.t
        match event:
            case e.RunStarted():
                self._start(event)
            case e.WorkerReady():
                self.device, self.environment = event.device, event.environment
            case e.EarlierRuns():
                self.earlier = event
            case e.StageStarted():
                self.stage, self.stage_variant, self.stage_detail = event.stage, event.variant, event.detail
                self.telemetry.stage_started()
            case e.CeilingsMeasured():
                self.ceilings = _with_older(self.ceilings, event)
            case e.Planned():
                self.planned = event
            case e.Samples():
                self._fold_samples(event)
            case e.ProcessStarted():
                self.processes.append(event)
                self.samples.process_started(event.epoch)
            case e.Examined():
                self._examine(event)
            case e.RoofProbed():
                self.roofs_probed = [*self.roofs_probed, event][-_MOST_ROOFS:]
            case e.TimerBracket() | e.OutputSample():
                pass
            case e.Stopped():
                self.stopped = event.reason
                self.samples.close()
            case e.Noticed():
                (self.explanations if event.explains else self.findings).append(event.finding)
            case e.Reported():
                self.figures[event.variant, event.name] = event.value
            case e.Log():
                self.log.add(event)
            case e.TelemetryStarted():
                self.telemetry.start(event)
            case e.Telemetry():
                self.telemetry.add(event)
            case e.TelemetryLost():
                self.telemetry.lost = event.reason
            case e.TelemetryEnded():
                self.telemetry.ended = True
            case e.TelemetrySwitched() | e.WorkerExited() | e.WorkerDone():
                pass
            case e.RunInvalid():
                self.invalid.append(event.reason)
            case e.RunEnded():
                self.outcome = event.outcome
                self._close()
            case e.VariantFailed():
                self._fail(event)
            case _:
                self._fold_variant(event)
        self._settle()

    def closed(self) -> RunState:
        """A copy of which nothing more will come: what ended early keeps the pairs that it completed."""
        copy = deepcopy(self)
        copy._close()
        return copy

    def _close(self) -> None:
        self.samples.close()
        self.telemetry.ended = True
        self._settle()

    def _start(self, event: e.RunStarted) -> None:
        self.request, self.started_t = event.request, event.t
        self.at, self.host = event.at, event.host
        job = event.request.job
        if isinstance(job, Calibrate):
            return
        functions = isinstance(job, TimeFunctions)
        self.variants = {info.name: _initial(info, functions=functions) for info in job.subject.variants}
        self.samples = SampleHistory(keys_of(job))

    def _fold_variant(
        self,
        event: e.Built
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
        | e.SoloRun
        | e.OtherClock,
    ) -> None:
        variant = self.variants.get(event.variant)
        if variant is None:
            return
        match event:
            case e.Built():
                variant.built = event
            case e.Counted():
                variant.counted = event
            case e.Phases():
                variant.phases = _added(variant.phases, event)
            case e.Profiled():
                variant.profiled = event
            case e.Calibrated():
                variant.calibrated = event
            case e.WarmedUp():
                variant.warmed = event
            case e.OtherClock():
                variant.other_clock = _with_other_clock(variant.other_clock, event)
            case e.SoloRun():
                variant.solo_run = event
                self.telemetry.solo_run(event)
            case e.Checked():
                variant.checked = event
                if not event.ok:
                    variant.status, variant.reason = Status.WRONG, event.reason
            case e.Unchecked():
                variant.unchecked = event.reason
            case e.VariantRefused():
                variant.status, variant.reason = Status.INVALID, event.reason
            case e.VariantSkipped():
                variant.status, variant.reason = Status.SKIPPED, event.reason
            case e.OutOfMemory():
                variant.status, variant.reason, variant.out_of_memory = Status.OUT_OF_MEMORY, event.cause, event
            case _:
                assert_never(event)

    def _fail(self, event: e.VariantFailed) -> None:
        self.failures.append(event)
        variant = self.variants.get(event.variant or "")
        if variant is None:
            return
        if variant.failure is None:
            variant.failure = event
        if variant.status == Status.PENDING and event.kind not in _FROM_OUTSIDE:
            variant.status, variant.reason = Status.FAILED, event.cause

    def _examine(self, event: e.Examined) -> None:
        variant = self.variants.get(event.variant or "")
        examined = self.examined if variant is None else variant.examined
        before = examined.get(event.check)
        examined[event.check] = event if before is None else together(before, event)
        # Where nothing could be told apart, nothing is claimed; but nobody is accused.
        accused = not event.ok and event.check != CheckKind.NULL_ANSWERS
        if variant is not None and accused and variant.status in (Status.PENDING, Status.OK):
            variant.status, variant.reason = (Status.WRONG if event.wrong else Status.INVALID), event.reason

    def _fold_samples(self, event: e.Samples) -> None:
        items = {name: variant.items for name, variant in self.variants.items()}
        baseline = next(iter(items.values()), 1.0)
        self.samples.add(event, {name: items.get(name, baseline) for name in event.names})
        variants = [self.variants.get(name) for name in event.names]
        for place, index in enumerate(event.variant):
            if variant := variants[index]:
                variant.blocks += 1
                variant.wall_s += event.times_s[place]
                variant.cpu_s += event.cpu_s[place]
                variant.faults += event.faults[place]
                variant.switches += event.switches[place]
                variant.sm_mhz += event.sm_mhz[place] if event.sm_mhz else 0.0
        if self.samples.start <= self.samples.end:
            self.telemetry.measured(self.samples.start, self.samples.end)

    def _settle(self) -> None:
        if self.samples.unsettled:
            sampling = self.request is not None and self.request.telemetry != TELEMETRY_OFF
            until = self.telemetry.settled_until(self.t, sampling=sampling)
            if self.samples.unsettled[0].end <= until:
                windows = self.telemetry.windows
                self.samples.settle(until, windows.windows())
                windows.drop(self.samples.undecided_from)


def fold_all(events: Iterable[e.AnyEvent]) -> RunState:
    """The state after all of the events."""
    state = RunState()
    for event in events:
        state.fold(event)
    return state


def _initial(info: VariantInfo, *, functions: bool) -> VariantState:
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


def _with_older(before: e.CeilingsMeasured | None, event: e.CeilingsMeasured) -> e.CeilingsMeasured:
    """The event; until it has the launches, which come last, also what it lacks of those before: of an earlier run."""
    if before is None or any(ceiling.roof == LAUNCH for ceiling in event.ceilings):
        return event
    fresh = {ceiling.key for ceiling in event.ceilings}
    older = [ceiling for ceiling in before.ceilings if ceiling.key not in fresh]
    cache_bytes = before.cache_bytes if event.cache_bytes is None else event.cache_bytes
    return replace(event, ceilings=(*event.ceilings, *older), cache_bytes=cache_bytes)
