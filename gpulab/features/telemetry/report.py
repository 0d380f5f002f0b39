"""Readings folded as they come: what is shown, and what they mean. Bounded in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import reduce
from math import inf
from operator import or_
from statistics import fmean

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, RunStarted, Samples, SoloRun, StageStarted
from gpulab.core.findings import Finding
from gpulab.core.limits import TELEMETRY_OFF
from gpulab.core.statuses import Cache
from gpulab.features.telemetry import result
from gpulab.features.telemetry.events import (
    POWER_CAP,
    SLOWED,
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
    reason_letters,
    reason_names,
)
from gpulab.features.telemetry.fields import PROCESSES_S, RATE_HZ
from gpulab.features.telemetry.findings import clocks_slowed, gpu_shared
from gpulab.features.telemetry.result import SoloReport, TelemetryReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport, fields_of
from gpulab.report.samples import InvalidWindows
from gpulab.report.state import RunState, VariantState
from gpulab.report.variants import rate
from gpulab.stats.series import Window

STALE_S = 3 / RATE_HZ
_AVERAGED = ("busy", "power_average")
_AVERAGED_S = 1.0
"""Fields that the driver averages over a second: until then they hold what ran before."""


def belongs_to(reading: Telemetry, solo: SoloRun) -> bool:
    """Return whether the whole stretch of a reading lies within a solo run."""
    # GPM's counters are up to 0.1 s old: a reading just after a change shows the past
    return reading.since >= solo.started + 0.1 and reading.t <= solo.ended


def solo_report(readings: Sequence[Telemetry], solo: SoloRun) -> SoloReport:
    """Return what was read while one variant ran alone, its energy per step; `readings` all belong
    to the run.
    """
    fields = {field for reading in readings for field in reading.values}
    late = [reading for reading in readings if reading.since >= solo.started + _AVERAGED_S]
    means = {}
    for field in fields - {"energy"}:
        chosen = late if field in _AVERAGED else readings
        values = [reading.values[field] for reading in chosen if field in reading.values]
        if values:
            means[field] = fmean(values)
    counted = [
        (reading.t, reading.values["energy"]) for reading in readings if "energy" in reading.values
    ]
    energy_j = None
    if len(counted) > 1 and counted[-1][1] > counted[0][1]:
        power = (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0])
        energy_j = power * (solo.ended - solo.started) / solo.steps
    report = SoloReport(
        seconds=solo.ended - solo.started,
        readings=len(readings),
        time_s=Estimate(value=solo.time_s, low=solo.low_s, high=solo.high_s),
        energy_j=energy_j,
        means=means,
    )
    reasons = [reading.reasons for reading in readings if reading.reasons is not None]
    if not reasons:
        return report
    slowed = fmean(bool(each & SLOWED) for each in reasons)
    return replace(report, clocks=reason_letters(reduce(or_, reasons)), slowed=slowed)


_CHARTED = 200
"""Readings that the charts of the screen go back to."""
_MOST_OF_A_STAGE = 6000


class TelemetryState:
    """Everything that any face shows of the readings so far."""

    def __init__(self) -> None:
        self.sampling = True
        """Whether any readings are to come at all."""
        self.started: TelemetryStarted | None = None
        self.unsupported: dict[str, str] = {}
        self.lost: Finding | None = None
        self.ended = False
        self.readings = 0
        self.problems: dict[str, Finding] = {}
        """Errors of the device, each once."""
        self.power_capped = self.while_measuring = 0
        """Readings during the rounds, and how many of them showed a power cap."""
        self._readings: deque[Telemetry] = deque(maxlen=_CHARTED)
        self._peaks: dict[str, float] = {}
        self._first_j: float | None = None
        self._reasons: int | None = None
        self._slowed = False
        self._of_stage: deque[Telemetry] = deque(maxlen=_MOST_OF_A_STAGE)
        self._solo: dict[str, tuple[SoloRun, list[Telemetry]]] = {}
        self._reports: dict[str, SoloReport] = {}
        self._measured: tuple[float, float] | None = None
        self.clocks_final_until = self.processes_final_until = -inf
        self._undecided: deque[tuple[float, bool]] = deque(maxlen=_MOST_OF_A_STAGE)
        """Readings after the last block that is known: its successor decides whether they count."""

    @property
    def recent(self) -> Sequence[Telemetry]:
        """The newest readings, the oldest first."""
        return tuple(self._readings)

    def start(self, event: TelemetryStarted) -> None:
        self.started = event
        self.unsupported = event.unsupported
        self._note(event.problems)

    def add(self, reading: Telemetry) -> None:
        self.readings += 1
        self.unsupported = reading.unsupported or self.unsupported
        self._note(reading.problems)
        self._readings.append(reading)
        for field, value in reading.values.items():
            if field == "energy":  # the driver counts since it was loaded
                self._first_j = value if self._first_j is None else self._first_j
                self._peaks[field] = value - self._first_j
            elif value > self._peaks.get(field, -inf):
                self._peaks[field] = value
        self._of_stage.append(reading)
        for solo, readings in self._solo.values():
            if belongs_to(reading, solo):
                readings.append(reading)
        if reading.reasons is not None:
            self._reasons = reading.reasons
            self._slowed = self._slowed or bool(reading.reasons & SLOWED)
            self._undecided.append((reading.t, bool(reading.reasons & POWER_CAP)))
            self._count_power_caps()

    def solo_run(self, event: SoloRun) -> None:
        self._solo[event.variant] = (
            event,
            [reading for reading in self._of_stage if belongs_to(reading, event)],
        )

    def measured(self, start: float, end: float) -> None:
        """The rounds went on from `start` to `end`, as far as is known."""
        self._measured = start, end
        self._count_power_caps()

    def solo_report(self, variant: str) -> SoloReport | None:
        """Return what was read while the variant ran alone; None where it did not."""
        if variant not in self._solo:
            return None
        solo, readings = self._solo[variant]
        known = self._reports.get(variant)
        if known is None or known.readings != len(readings):
            known = self._reports[variant] = solo_report(readings, solo)
        return known

    def final_until(self) -> float:
        """Until when no later reading can add a window."""
        if not self.sampling or self.ended:
            return inf
        if self.started is None:
            return -inf
        if self.started.gpu is None:
            return inf
        clocks = inf if "reasons" in self.unsupported else self.clocks_final_until
        processes = inf if "processes" in self.unsupported else self.processes_final_until
        return min(clocks, processes)

    def report(self, now: float, *, over: bool) -> TelemetryReport | None:
        """`now` is on the events' clock; `over`: no more readings come."""
        started = self.started
        if started is None:
            return None
        over = over or self.ended
        newest = list(self._readings)
        age_s = now - (newest[-1].t if newest else started.t)
        if not self.lost:
            newest = newest[-10:]  # a field that none of them had has no last value
        last: dict[str, float] = {}
        for reading in newest:
            last |= reading.values
        return TelemetryReport(
            **fields_of(started, "gpu", "uuid", "no_gpu_reason", "limits", "health"),
            lost=self.lost,
            readings=self.readings,
            unsupported=self.unsupported,
            last=last,
            peaks=dict(self._peaks),
            clocks=reason_letters(self._reasons),
            slowed=self._slowed,
            age_s=None if over else age_s,
            stale=not over and age_s > STALE_S,
        )

    def _note(self, problems: list[Finding]) -> None:
        for problem in problems:
            self.problems.setdefault(f"{problem.code} {problem.values}", problem)

    def _count_power_caps(self) -> None:
        if self._measured is None:
            return
        start, end = self._measured
        while self._undecided and self._undecided[0][0] <= end:
            t, capped = self._undecided.popleft()
            if t >= start:
                self.while_measuring += 1
                self.power_capped += capped


def _run_started(state: RunState, event: RunStarted) -> None:
    state.part(TelemetryState).sampling = event.request.telemetry != TELEMETRY_OFF
    _settle(state)


def _started(state: RunState, event: TelemetryStarted) -> None:
    state.part(TelemetryState).start(event)
    _settle(state)


def _add(state: RunState, reading: Telemetry) -> None:
    history = state.part(TelemetryState)
    history.add(reading)
    add_windows(state.samples.windows, reading)
    if reading.reasons is not None:
        history.clocks_final_until = reading.since
    if reading.others is not None and reading.others_since is not None:
        history.processes_final_until = reading.others_since
    _settle(state)


def _ended(state: RunState, event: TelemetryEnded | TelemetryLost) -> None:
    history = state.part(TelemetryState)
    history.ended = True
    if isinstance(event, TelemetryLost):
        history.lost = event.reason
    _settle(state)


def _settle(state: RunState) -> None:
    if not state.over:
        state.samples.final_until = state.part(TelemetryState).final_until()


def add_windows(windows: InvalidWindows, reading: Telemetry) -> None:
    """Around a reading of a slowdown, or of another process: up to the next reading."""
    if reading.reasons is not None:
        windows.close(clocks_slowed.code, reading.t)
        if slowed := reading.reasons & SLOWED:
            names = tuple(reason_names(slowed))
            windows.begin(Window(reading.since, reading.t + 1 / RATE_HZ, clocks_slowed.code, names))
    if reading.others is not None and reading.others_since is not None:
        windows.close(gpu_shared.code, reading.t)
        if reading.others:
            names = tuple(reading.others)
            end = reading.t + PROCESSES_S
            windows.begin(Window(reading.others_since, end, gpu_shared.code, names))


def _measured(state: RunState, _: Samples) -> None:
    samples = state.samples
    if samples.start <= samples.end:
        state.part(TelemetryState).measured(samples.start, samples.end)


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    """With what was read while the variant ran alone."""
    built = variant.last(Built)
    solo = draft.state.part(TelemetryState).solo_report(variant.name)
    if solo is None:
        return report
    job = draft.state.timed_job
    energy_j = solo.energy_j
    if energy_j is not None:
        energy_j /= variant.items
    if job is not None and job.cache == Cache.COLD:
        energy_j = None
    time_s = solo.time_s.value
    if built is not None:
        solo = replace(
            solo, bytes_per_s=rate(built.bytes, time_s), flops_per_s=rate(built.flops, time_s)
        )
    solo = replace(solo, items_per_s=variant.items / time_s, energy_j=energy_j)
    return report.with_parts(solo_run=solo)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    history = draft.state.part(TelemetryState)
    waits = history.sampling and history.started is None
    on = waits and draft.state.outcome is None and draft.state.device is not None
    progress = replace(report.progress, awaiting_telemetry=on)
    telemetry = history.report(draft.now, over=draft.state.over)
    return replace(report.with_parts(telemetry=telemetry), progress=progress)


FEATURE = Feature(
    "telemetry",
    variant_part=result.VariantPart,
    run_part=result.RunPart,
    folds={
        RunStarted: _run_started,
        TelemetryStarted: _started,
        Telemetry: _add,
        TelemetryLost: _ended,
        TelemetryEnded: _ended,
        StageStarted: lambda state, _: state.part(TelemetryState)._of_stage.clear(),
        Samples: _measured,
        SoloRun: lambda state, event: state.part(TelemetryState).solo_run(event),
    },
    add_to_variant=_add_to_variant,
    add_to_run=_add_to_run,
    views=[View("telemetry.view:solo_runs", Section.ALONE)],
)
