"""What telemetry means for a measurement: time in which nothing can be believed, and what a variant did alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import or_
from statistics import fmean

from gpulab.analysis.series import Window
from gpulab.protocol.events import SoloRun, Telemetry
from gpulab.protocol.telemetry_fields import PROCESSES_S, RATE_HZ, SLOWED, reason_names

STALE_S = 3 / RATE_HZ
SLOWED_CODE, SHARED_CODE = "clocks_slowed", "gpu_shared"
_AVERAGED, _AVERAGED_S = ("busy", "power_average"), 1.0
"""Fields that the driver averages over as much as a second: before that they still hold what ran before."""
_COUNTERS_LAG_S = 0.1
"""GPM returns counters that are up to this old: a reading just after a change still shows what was before."""


class InvalidWindows:
    """Windows around each reading of a slowdown, or of another process on the GPU: up to the reading after it.

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
        """Drop the windows that end by `until`; no block that began before it may be asked about any more."""
        for cause, windows in list(self._by_cause.items()):
            rest = [window for window in windows if window.end > until]
            if rest:
                self._by_cause[cause] = rest
            else:
                del self._by_cause[cause]

    def windows(self) -> list[Window]:
        """All that are not dropped, slowdowns first; those that overlap for the same cause are one."""
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
        window = Window(windows[-1].start, max(windows[-1].end, window.end), window.code, window.names)
        windows.pop()
    windows.append(window)


@dataclass(frozen=True)
class SoloMeans:
    """Means over a variant's solo run, by field; `energy_j` per step; None where nothing was read."""

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
    counted = [(reading.t, reading.values["energy"]) for reading in readings if "energy" in reading.values]
    energy_j = None
    if len(counted) > 1 and counted[-1][1] > counted[0][1]:
        power = (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0])
        energy_j = power * (solo.ended - solo.started) / solo.steps
    means.pop("energy", None)
    return SoloMeans(means, energy_j, len(readings), reduce(or_, reasons) if reasons else None)
