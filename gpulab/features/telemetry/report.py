"""Readings folded as they come: what is shown, and what they mean. Bounded in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import or_
from statistics import fmean

from gpulab.core.events import SoloRun, Telemetry, TelemetryStarted
from gpulab.core.finding import Finding
from gpulab.features.telemetry.fields import (
    POWER_CAP,
    PROCESSES_S,
    RATE_HZ,
    SLOWED,
    reason_letters,
    reason_names,
)
from gpulab.report.report import TelemetryReport
from gpulab.stats.series import Window

STALE_S = 3 / RATE_HZ
SLOWED_CODE, SHARED_CODE = "clocks_slowed", "gpu_shared"
_AVERAGED, _AVERAGED_S = ("busy", "power_average"), 1.0
"""Fields that the driver averages over a second: until then they hold what ran before."""
_COUNTERS_LAG_S = 0.1
"""GPM's counters are up to this old: a reading just after a change shows the past."""


class InvalidWindows:
    """Windows around each reading of a slowdown, or of another process on the GPU: up to the
    reading after it.

    Readings are added in order. What began before `settled_until` will not change any more.
    """

    def __init__(self) -> None:
        self._by_cause: dict[tuple[str, tuple[str, ...]], list[Window]] = {}
        """Of each cause sorted and disjoint."""
        self._order: dict[tuple[str, tuple[str, ...]], int] = {}
        """Causes in the order in which they appeared, also those whose windows are all dropped."""
        self._open: dict[str, Window] = {}
        """The window of the last reading, by code: the next reading ends it."""
        self.clocks_settled_until = self.processes_settled_until = -inf

    def add(self, reading: Telemetry) -> None:
        if reading.reasons is not None:
            self._close(SLOWED_CODE, reading.t)
            self.clocks_settled_until = reading.since
            if slowed := reading.reasons & SLOWED:
                names = tuple(reason_names(slowed))
                self._begin(Window(reading.since, reading.t + 1 / RATE_HZ, SLOWED_CODE, names))
        if reading.others is not None:
            began = reading.since if reading.others_since is None else reading.others_since
            self._close(SHARED_CODE, reading.t)
            self.processes_settled_until = began
            if reading.others:
                names = tuple(reading.others)
                self._begin(Window(began, reading.t + PROCESSES_S, SHARED_CODE, names))

    def drop(self, until: float) -> None:
        """Drop the windows that end by `until`: earlier blocks are not asked about any more."""
        for cause, windows in list(self._by_cause.items()):
            rest = [window for window in windows if window.end > until]
            if rest:
                self._by_cause[cause] = rest
            else:
                del self._by_cause[cause]

    def windows(self) -> list[Window]:
        """All that are not dropped, slowdowns first; overlapping ones of a cause are one."""
        merged = {cause: [*windows] for cause, windows in self._by_cause.items()}
        for code in (SLOWED_CODE, SHARED_CODE):
            if window := self._open.get(code):
                _merge(merged.setdefault(window.cause, []), window)
        causes = sorted(merged, key=lambda cause: (cause[0] != SLOWED_CODE, self._order[cause]))
        return [window for cause in causes for window in merged[cause]]

    def _begin(self, window: Window) -> None:
        self._order.setdefault(window.cause, len(self._order))
        self._open[window.code] = window

    def _close(self, code: str, end: float) -> None:
        if window := self._open.pop(code, None):
            closed = Window(window.start, end, window.code, window.names)
            _merge(self._by_cause.setdefault(closed.cause, []), closed)


def _merge(windows: list[Window], window: Window) -> None:
    if windows and window.start <= windows[-1].end:
        window = Window(
            windows[-1].start, max(windows[-1].end, window.end), window.code, window.names
        )
        windows.pop()
    windows.append(window)


@dataclass(frozen=True)
class SoloMeans:
    """Means over a solo run, by field; `energy_j` per step; None where nothing was read."""

    means: dict[str, float]
    energy_j: float | None
    readings: int
    reasons: int | None


def belongs_to(reading: Telemetry, solo: SoloRun) -> bool:
    """Whether the whole stretch of a reading lies within a solo run."""
    return reading.since >= solo.started + _COUNTERS_LAG_S and reading.t <= solo.ended


def solo_means(readings: Sequence[Telemetry], solo: SoloRun) -> SoloMeans:
    """What was read while one variant ran alone; `readings` all belong to the run."""
    fields = {field for reading in readings for field in reading.values}
    late = [reading for reading in readings if reading.since >= solo.started + _AVERAGED_S]
    means = {}
    for field in fields:
        chosen = late if field in _AVERAGED else readings
        values = [reading.values[field] for reading in chosen if field in reading.values]
        if values:
            means[field] = fmean(values)
    reasons = [reading.reasons for reading in readings if reading.reasons is not None]
    counted = [
        (reading.t, reading.values["energy"]) for reading in readings if "energy" in reading.values
    ]
    energy_j = None
    if len(counted) > 1 and counted[-1][1] > counted[0][1]:
        power = (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0])
        energy_j = power * (solo.ended - solo.started) / solo.steps
    means.pop("energy", None)
    return SoloMeans(means, energy_j, len(readings), reduce(or_, reasons) if reasons else None)


_RECENT, _CHARTED = 120, 160
"""Readings that a report has, 24 s of them; and those that the charts of the screen go back to."""
_SHOWN = 10
"""A field that none of so many readings had has no last value."""
_MOST_OF_A_STAGE = 6000
_OVERDUE_S = 60.0
"""A reading is not waited for any longer: one whose driver hangs may never come, and samples that
wait for it pile up.

Readings are 0.2 s apart and looks at processes 2 s, so no driver that works comes near it.
"""


class TelemetryHistory:
    """Everything that any face shows of the readings so far."""

    def __init__(self) -> None:
        self.started: TelemetryStarted | None = None
        self.unsupported: dict[str, str] = {}
        self.lost: Finding | None = None
        self.ended = False
        self.readings = 0
        self.windows = InvalidWindows()
        self.problems: dict[str, Finding] = {}
        """Errors of the device, each once."""
        self.power_capped = self.while_measuring = 0
        """Readings during the rounds, and how many of them showed a power cap."""
        self._readings: deque[Telemetry] = deque(maxlen=_CHARTED)
        self._peaks: dict[str, float] = {}
        self._reasons: int | None = None
        self._slowed = False
        self._of_stage: deque[Telemetry] = deque(maxlen=_MOST_OF_A_STAGE)
        self._solo: dict[str, tuple[SoloRun, list[Telemetry]]] = {}
        self._means: dict[str, tuple[int, SoloMeans]] = {}
        self._measured: tuple[float, float] | None = None
        self._undecided: deque[tuple[float, bool]] = deque(maxlen=_MOST_OF_A_STAGE)
        """Readings after the last block that is known: its successor decides whether they count."""

    @property
    def recent(self) -> Sequence[Telemetry]:
        """The newest readings, the oldest first."""
        return tuple(self._readings)

    def start(self, event: TelemetryStarted) -> None:
        self.started, self.unsupported = event, event.unsupported
        self._note(event.problems)

    def add(self, reading: Telemetry) -> None:
        self.readings += 1
        self.unsupported = reading.unsupported or self.unsupported
        self._note(reading.problems)
        self._readings.append(reading)
        for field, value in reading.values.items():
            if value > self._peaks.get(field, -inf):
                self._peaks[field] = value
        self._of_stage.append(reading)
        for solo, readings in self._solo.values():
            if belongs_to(reading, solo):
                readings.append(reading)
        self.windows.add(reading)
        if reading.reasons is not None:
            self._reasons = reading.reasons
            self._slowed = self._slowed or bool(reading.reasons & SLOWED)
            self._undecided.append((reading.t, bool(reading.reasons & POWER_CAP)))
            self._count_power_caps()

    def stage_started(self) -> None:
        """A solo run lies within one stage: readings before it are of no use to it."""
        self._of_stage.clear()

    def solo_run(self, event: SoloRun) -> None:
        self._solo[event.variant] = (
            event,
            [reading for reading in self._of_stage if belongs_to(reading, event)],
        )

    def measured(self, start: float, end: float) -> None:
        """The rounds went on from `start` to `end`, as far as is known."""
        self._measured = start, end
        self._count_power_caps()

    def solo_means(self, variant: str) -> SoloMeans | None:
        """What was read while the variant ran alone; None where it did not."""
        if variant not in self._solo:
            return None
        solo, readings = self._solo[variant]
        cached = self._means.get(variant)
        if cached is None or cached[0] != len(readings):
            cached = self._means[variant] = len(readings), solo_means(readings, solo)
        return cached[1]

    def settled_until(self, now: float, *, sampling: bool) -> float:
        """Until when no later reading can add a window, or one that does comes too late to count.

        A window of a late reading applies only to what is not settled by then. `now` is on the
        events' clock; `sampling`: whether any readings are to come at all.
        """
        if not sampling or self.ended or self.lost is not None:
            return inf
        overdue = now - _OVERDUE_S
        if self.started is None:
            return overdue
        if self.started.gpu is None:
            return inf
        clocks = inf if "reasons" in self.unsupported else self.windows.clocks_settled_until
        processes = inf if "processes" in self.unsupported else self.windows.processes_settled_until
        return max(min(clocks, processes), overdue)

    def report(self, now: float) -> TelemetryReport | None:
        """`now` is on the events' clock."""
        started = self.started
        if started is None:
            return None
        over = self.ended or self.lost is not None
        newest = list(self._readings)[-_RECENT:]
        age_s = now - (newest[-1].t if newest else started.t)
        last: dict[str, float] = {}
        for reading in newest[-(_RECENT if self.lost else _SHOWN) :]:
            last |= reading.values
        recent: dict[str, list[float]] = {}
        for reading in newest:
            for field, value in reading.values.items():
                recent.setdefault(field, []).append(value)
        return TelemetryReport(
            gpu=started.gpu,
            uuid=started.uuid,
            no_gpu_reason=started.no_gpu_reason,
            lost=self.lost,
            readings=self.readings,
            unsupported=self.unsupported,
            limits=started.limits,
            health=started.health,
            last=last,
            recent=recent,
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
