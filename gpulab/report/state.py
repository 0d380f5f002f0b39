"""The state of a run: made of nothing but its events, in time linear in their number, in memory that is bounded.

A replayed file, a live run and a test go through the same states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field

from msgspec.structs import replace

from gpulab.analysis.comparison import keys_of
from gpulab.protocol import events as e
from gpulab.protocol.ceiling import LAUNCH
from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding
from gpulab.protocol.jobs import TELEMETRY_OFF, Calibrate, RunRequest, TimedJob, TimeFunctions
from gpulab.protocol.statuses import CheckKind, IntervalUnit, Outcome, Stage, StopReason
from gpulab.report.examined import add_examined
from gpulab.report.log_history import LogHistory
from gpulab.report.samples import SampleHistory
from gpulab.report.telemetry_history import TelemetryHistory
from gpulab.report.variant_state import VariantState, initial

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
    stages: deque[e.StageStarted] = field(default_factory=lambda: deque(maxlen=_MOST_STAGES))
    """The latest of them, in their order."""
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
                self.stages.append(event)
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
                self.invalid += [event.reason] if event.reason not in self.invalid else []  # each process says it
            case e.RunEnded():
                self.outcome = event.outcome
                self._close()
            case e.VariantFailed():
                self._fail(event)
            case _:
                if variant := self.variants.get(event.variant):
                    variant.fold(event)
                    if isinstance(event, e.SoloRun):
                        self.telemetry.solo_run(event)
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
        self.variants = {info.name: initial(info, functions=functions) for info in job.subject.variants}
        self.samples = SampleHistory(keys_of(job))

    def _fail(self, event: e.VariantFailed) -> None:
        self.failures.append(event)
        if variant := self.variants.get(event.variant or ""):
            variant.fail(event)

    def _examine(self, event: e.Examined) -> None:
        if variant := self.variants.get(event.variant or ""):
            variant.examine(event)
        else:
            add_examined(self.examined, event)

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


def _with_older(before: e.CeilingsMeasured | None, event: e.CeilingsMeasured) -> e.CeilingsMeasured:
    """The event; until it has the launches, which come last, also what it lacks of those before: of an earlier run."""
    if before is None or any(ceiling.roof == LAUNCH for ceiling in event.ceilings):
        return event
    fresh = {ceiling.key for ceiling in event.ceilings}
    older = [ceiling for ceiling in before.ceilings if ceiling.key not in fresh]
    cache_bytes = before.cache_bytes if event.cache_bytes is None else event.cache_bytes
    return replace(event, ceilings=(*event.ceilings, *older), cache_bytes=cache_bytes)
