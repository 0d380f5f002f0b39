"""Readings folded as they come: what is shown of them, and what they mean for the measurement. Bounded in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf

from gpulab.analysis.telemetry import STALE_S, InvalidWindows, SoloMeans, belongs_to, solo_means
from gpulab.protocol.events import SoloRun, Telemetry, TelemetryStarted
from gpulab.protocol.finding import Finding
from gpulab.protocol.telemetry_fields import POWER_CAP, SLOWED, reason_letters
from gpulab.report.report import TelemetryReport

_RECENT, _CHARTED = 120, 160
"""Readings that a report has, 24 s of them; and those that the charts of the screen go back to."""
_SHOWN = 10
"""A field that none of so many readings had has no last value."""
_MOST_OF_A_STAGE = 6000
_OVERDUE_S = 60.0
"""A reading is not waited for any longer: one whose driver hangs may never come, and samples that wait for it pile up.

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
        self._solo[event.variant] = event, [reading for reading in self._of_stage if belongs_to(reading, event)]

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

        A window of a late reading applies only to what is not settled by then. `now` is on the events' clock;
        `sampling`: whether any readings are to come at all.
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
