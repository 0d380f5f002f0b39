"""The state of a run: made of nothing but its events, in time linear in their number, in memory
that is bounded.

A replayed file, a live run and a test go through the same states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field

from msgspec.structs import replace

from gpulab.core.events import (
    AloneRun,
    Built,
    Calibrated,
    CeilingsMeasured,
    Checked,
    Counted,
    EarlierRuns,
    Event,
    Examined,
    FirstSteps,
    KernelsCompiled,
    Log,
    MemoryUsed,
    Noticed,
    OtherClock,
    OutOfMemory,
    Phases,
    Planned,
    ProcessStarted,
    Profiled,
    Reported,
    RoofProbed,
    RunEnded,
    RunInvalid,
    RunStarted,
    Samples,
    SoloRun,
    StageStarted,
    Stopped,
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
    Tuned,
    Unchecked,
    VariantEvent,
    VariantFailed,
    VariantRefused,
    VariantSkipped,
    WarmedUp,
    WorkerDone,
    WorkerExited,
    WorkerReady,
)
from gpulab.core.finding import Finding, Value, finding
from gpulab.core.jobs import (
    TELEMETRY_OFF,
    Calibrate,
    RunRequest,
    TimedJob,
    TimeFunctions,
    VariantInfo,
)
from gpulab.core.limits import KEPT_LINES
from gpulab.core.machine import Device
from gpulab.core.payloads import LAUNCH, KernelCode
from gpulab.core.statuses import (
    CheckKind,
    Clock,
    FailureKind,
    IntervalUnit,
    Outcome,
    Stage,
    Status,
    StopReason,
)
from gpulab.features.telemetry.report import TelemetryHistory
from gpulab.report.report import LogReport
from gpulab.report.samples import SampleHistory
from gpulab.stats.comparison import keys_of


class LogHistory:
    def __init__(self) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)
        self._skipped = 0
        self.count = 0
        """Lines so far, those left out too."""

    def add(self, event: Log) -> None:
        self.count += event.skipped + len(event.lines)
        self._skipped += event.skipped
        room = KEPT_LINES - len(self._head)
        self._head += event.lines[:room]
        later = event.lines[room:]
        self._skipped += max(0, len(self._tail) + len(later) - KEPT_LINES)
        self._tail.extend(later)

    def report(self) -> LogReport:
        return LogReport(head=list(self._head), skipped=self._skipped, tail=list(self._tail))


_SUMMED = frozenset({"late"})
"""Counts of what a process did; of other numbers the largest stands, and of all else the last."""


def add_examined(examined: dict[CheckKind, Examined], event: Examined) -> None:
    """Put a report beside those before it."""
    before = examined.get(event.check)
    examined[event.check] = event if before is None else together(before, event)


def together(before: Examined, event: Examined) -> Examined:
    """What fails outlives what casts doubt, that outlives what passed, and that what did not
    run.
    """
    decisive = event if _rank(event) <= _rank(before) else before
    count = sum(report.count for report in (before, event) if report.skipped is None)
    if not _ran(before) or not _ran(event):
        return replace(decisive, count=count)
    values = {**before.values, **event.values}
    both = before.values.keys() & event.values.keys()
    merged = {name: _merged(name, before.values[name], event.values[name]) for name in both}
    return replace(decisive, count=count, values={**values, **merged})


def _rank(event: Examined) -> int:
    if not event.ok:
        return 0
    return 1 if event.reason else 3 if event.skipped else 2


def _ran(event: Examined) -> bool:
    return event.ok and event.skipped is None


def _merged(name: str, before: Value, after: Value) -> Value:
    if not _is_number(before) or not _is_number(after):
        return before if after is None else after
    assert isinstance(before, (int, float))
    assert isinstance(after, (int, float))
    return before + after if name in _SUMMED else max(before, after)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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
    built: Built | None = None
    counted: Counted | None = None
    phases: Phases | None = None
    """The windows so far as one."""
    profiled: Profiled | None = None
    checked: Checked | None = None
    calibrated: Calibrated | None = None
    warmed: WarmedUp | None = None
    solo_run: SoloRun | None = None
    alone: list[AloneRun] = field(default_factory=list)
    """Of each process in which it was built first, of a long run the first ones."""
    examined: dict[CheckKind, Examined] = field(default_factory=dict)
    """What each kind of check showed, all its events as one: the first that failed, and how often
    it ran.
    """
    other_clocks: dict[Clock, OtherClock] = field(default_factory=dict)
    first_steps: list[FirstSteps] = field(default_factory=list)
    """Of each process that took them, of a long run the latest."""
    memory: MemoryUsed | None = None
    kernels: list[KernelCode] = field(default_factory=list)
    tuned: Tuned | None = None
    failure: VariantFailed | None = None
    out_of_memory: OutOfMemory | None = None
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
            case Built():
                self.built = event
            case Counted():
                self.counted = event
            case Phases():
                self.phases = _added(self.phases, event)
            case Profiled():
                self.profiled = event
            case Calibrated():
                self.calibrated = event
            case WarmedUp():
                self.warmed = event
            case OtherClock():
                self.other_clocks[event.clock] = _with_other_clock(
                    self.other_clocks.get(event.clock), event
                )
            case FirstSteps():
                self.first_steps = [*self.first_steps, event][-_MOST_FIRST_STEPS:]
            case MemoryUsed():
                self.memory = event
            case KernelsCompiled():
                self.kernels = event.kernels
            case Tuned():
                self.tuned = self.tuned or event
            case AloneRun():
                self.alone += [event] if len(self.alone) < _MOST_ALONE else []
            case SoloRun():
                self.solo_run = event
            case Checked():
                self.checked = event
                if not event.ok:
                    self.status, self.reason = Status.WRONG, event.reason
            case Unchecked():
                self.unchecked = event.reason
            case VariantRefused():
                self.status, self.reason = Status.INVALID, event.reason
            case VariantSkipped():
                self.status, self.reason = Status.SKIPPED, event.reason
            case OutOfMemory():
                self.status, self.reason, self.out_of_memory = (
                    Status.OUT_OF_MEMORY,
                    event.cause,
                    event,
                )

    def fail(self, event: VariantFailed) -> None:
        if self.failure is None:
            self.failure = event
        if self.status == Status.PENDING and event.kind not in _FROM_OUTSIDE:
            self.status, self.reason = Status.FAILED, event.cause

    def examine(self, event: Examined) -> None:
        add_examined(self.examined, event)
        # Where nothing could be told apart, nothing is claimed; but nobody is accused.
        accused = not event.ok and event.check != CheckKind.NULL_ANSWERS
        if accused and self.status in (Status.PENDING, Status.OK):
            self.status, self.reason = (
                (Status.WRONG if event.wrong else Status.INVALID),
                event.reason,
            )


def initial(info: VariantInfo, *, functions: bool) -> VariantState:
    """A variant before anything of it is known."""
    unchecked = (
        None
        if info.unchecked is None
        else finding("declared_unchecked", info.name, reason=info.unchecked)
    )
    if functions:
        unchecked = finding("plain_function", info.name)
    elif unchecked is None and info.function is not None:
        unchecked = finding("checked_in_its_own_run", info.name)
    if info.missing is not None:
        return VariantState(info, status=Status.SKIPPED, reason=info.missing, unchecked=unchecked)
    return VariantState(info, unchecked=unchecked)


def _added(before: Phases | None, event: Phases) -> Phases:
    """One window together with those before it."""
    if before is None:
        return event
    return replace(
        event,
        steps=before.steps + event.steps,
        seconds=_sums(before.seconds, event.seconds),
        running_s=_sums(before.running_s, event.running_s),
    )


def _with_other_clock(before: OtherClock | None, event: OtherClock) -> OtherClock:
    """The times of one process together with those of the others, of a long run the latest."""
    if before is None:
        return event
    times_s = [*before.times_s, *event.times_s][-_MOST_OTHER_TIMES:]
    return replace(event, times_s=times_s, exposed=before.exposed or event.exposed)


def _sums(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}


_MOST_ROOFS = 1000
_MOST_STAGES = 200


@dataclass
class RunState:
    """One run so far; `outcome` is None until it has ended."""

    request: RunRequest | None = None
    device: Device | None = None
    environment: dict[str, str | None] = field(default_factory=dict)
    stage: Stage = Stage.START
    stage_variant: str | None = None
    stage_detail: str | None = None
    stages: deque[StageStarted] = field(default_factory=lambda: deque(maxlen=_MOST_STAGES))
    """The latest of them, in their order."""
    variants: dict[str, VariantState] = field(default_factory=dict)
    planned: Planned | None = None
    samples: SampleHistory = field(default_factory=lambda: SampleHistory(()))
    stopped: StopReason | None = None
    failures: list[VariantFailed] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    explanations: list[Finding] = field(default_factory=list)
    ceilings: CeilingsMeasured | None = None
    roofs_probed: list[RoofProbed] = field(default_factory=list)
    """Of every process that measured, of a long run the latest."""
    figures: dict[tuple[str | None, str], float | None] = field(default_factory=dict)
    log: LogHistory = field(default_factory=LogHistory)
    telemetry: TelemetryHistory = field(default_factory=TelemetryHistory)
    processes: list[ProcessStarted] = field(default_factory=list)
    """Those that measured, in their order; none in files from before they were recorded."""
    examined: dict[CheckKind, Examined] = field(default_factory=dict)
    """Checks of the whole run: see `VariantState.examined`."""
    invalid: list[Finding] = field(default_factory=list)
    """Why none of the verdicts holds."""
    earlier: EarlierRuns | None = None
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
        """What intervals are over: an epoch counts as a process where processes were not
        recorded.
        """
        return IntervalUnit.PROCESSES if self.processes else IntervalUnit.EPOCH_MEDIANS

    def fold(self, event: Event) -> None:
        """Take one more event in."""
        self.t = event.t
        match event:
            case RunStarted():
                self._start(event)
            case WorkerReady():
                self.device, self.environment = event.device, event.environment
            case EarlierRuns():
                self.earlier = event
            case StageStarted():
                self.stage, self.stage_variant, self.stage_detail = (
                    event.stage,
                    event.variant,
                    event.detail,
                )
                self.stages.append(event)
                self.telemetry.stage_started()
            case CeilingsMeasured():
                self.ceilings = _with_older(self.ceilings, event)
            case Planned():
                self.planned = event
            case Samples():
                self._fold_samples(event)
            case ProcessStarted():
                self.processes.append(event)
                self.samples.process_started(event.epoch)
            case Examined():
                self._examine(event)
            case RoofProbed():
                self.roofs_probed = [*self.roofs_probed, event][-_MOST_ROOFS:]
            case Stopped():
                self.stopped = event.reason
                self.samples.close()
            case Noticed():
                (self.explanations if event.explains else self.findings).append(event.finding)
            case Reported():
                self.figures[event.variant, event.name] = event.value
            case Log():
                self.log.add(event)
            case TelemetryStarted():
                self.telemetry.start(event)
            case Telemetry():
                self.telemetry.add(event)
            case TelemetryLost():
                self.telemetry.lost = event.reason
            case TelemetryEnded():
                self.telemetry.ended = True
            case WorkerExited() | WorkerDone():
                pass
            case RunInvalid():
                # each process says it
                self.invalid += [event.reason] if event.reason not in self.invalid else []
            case RunEnded():
                self.outcome = event.outcome
                self._close()
            case VariantFailed():
                self._fail(event)
            case VariantEvent():
                if variant := self.variants.get(event.variant):
                    variant.fold(event)
                    if isinstance(event, SoloRun):
                        self.telemetry.solo_run(event)
        self._settle()

    def closed(self) -> RunState:
        """A copy of which nothing more will come: what ended early keeps the pairs that it
        completed.
        """
        copy = deepcopy(self)
        copy._close()
        return copy

    def _close(self) -> None:
        self.samples.close()
        self.telemetry.ended = True
        self._settle()

    def _start(self, event: RunStarted) -> None:
        self.request, self.started_t = event.request, event.t
        self.at, self.host = event.at, event.host
        job = event.request.job
        if isinstance(job, Calibrate):
            return
        functions = isinstance(job, TimeFunctions)
        self.variants = {
            info.name: initial(info, functions=functions) for info in job.subject.variants
        }
        self.samples = SampleHistory(keys_of(job))

    def _fail(self, event: VariantFailed) -> None:
        self.failures.append(event)
        if variant := self.variants.get(event.variant or ""):
            variant.fail(event)

    def _examine(self, event: Examined) -> None:
        if variant := self.variants.get(event.variant or ""):
            variant.examine(event)
        else:
            add_examined(self.examined, event)

    def _fold_samples(self, event: Samples) -> None:
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


def fold_all(events: Iterable[Event]) -> RunState:
    """The state after all of the events."""
    state = RunState()
    for event in events:
        state.fold(event)
    return state


def _with_older(before: CeilingsMeasured | None, event: CeilingsMeasured) -> CeilingsMeasured:
    """The event; until it has the launches, which come last, also what it lacks of those before: of
    an earlier run.
    """
    if before is None or any(ceiling.roof == LAUNCH for ceiling in event.ceilings):
        return event
    fresh = {ceiling.key for ceiling in event.ceilings}
    older = [ceiling for ceiling in before.ceilings if ceiling.key not in fresh]
    cache_bytes = before.cache_bytes if event.cache_bytes is None else event.cache_bytes
    return replace(event, ceilings=(*event.ceilings, *older), cache_bytes=cache_bytes)
