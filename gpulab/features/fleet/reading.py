"""What a fleet needs of one run file: who measured, times, ceilings, clocks. Nothing else of the
file is decoded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import msgspec

from gpulab.core.payloads import COSTS, LAUNCH, MEASURED
from gpulab.core.run_file import RunFileError, lines_of
from gpulab.core.statuses import Outcome
from gpulab.core.values import (
    Amount,
    Count,
    Index,
    Line,
    Moment,
    Name,
    Number,
    PositiveAmount,
    StepTime,
)
from gpulab.core.wire import UNREADABLE
from gpulab.features.telemetry.fields import HELD_BACK
from gpulab.scenario import CONTROL, Param

_MOST_READINGS = 20_000
_FEWEST_BLOCKS = 8
_LAG_S = 0.1
"""A reading so soon after a solo run began shows what was before it."""


class _Subject(msgspec.Struct):
    scenario: Name = ""
    source_sha256: Name = ""
    params: dict[Name, Param] = {}


class _Job(msgspec.Struct):
    job: Name
    subject: _Subject | None = None
    roof: str | None = None
    ranks: int = 0
    smoke: bool = False


class _Request(msgspec.Struct):
    job: _Job


class _RunStarted(msgspec.Struct):
    request: _Request
    at: Name
    host: Line


class _Device(msgspec.Struct):
    kind: Name
    name: Line
    uuid: Line | None = None


class _WorkerReady(msgspec.Struct):
    device: _Device
    environment: dict[Name, Line | None]


class _ProcessStarted(msgspec.Struct):
    epoch: Index = 0


class _Built(msgspec.Struct):
    variant: Name
    bytes: Count | None = None
    flops: Count | None = None
    dtype: Name | None = None


class _Samples(msgspec.Struct):
    names: list[Name]
    epoch: list[Index]
    variant: list[Index]
    times_s: list[StepTime]
    sm_mhz: list[Amount] = []


class _Values(msgspec.Struct):
    sm_clock: Amount | None = None
    memory_clock: Amount | None = None


class _Telemetry(msgspec.Struct):
    t: Moment
    values: _Values
    reasons: Count | None = None
    others: list[Line] | None = None


class _TelemetryStarted(msgspec.Struct):
    uuid: Line | None = None
    health: dict[Name, Number] = {}


class _SoloRun(msgspec.Struct):
    variant: Name
    started: Moment
    ended: Moment


class MeasuredCeiling(msgspec.Struct, gc=False):
    """As in `Ceiling`, without what a fleet does not need."""

    roof: Name
    kind: Name
    unit: Name
    best: PositiveAmount
    median: PositiveAmount
    source: Name = MEASURED
    sm_mhz: Amount | None = None
    median_low: PositiveAmount | None = None
    median_high: PositiveAmount | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the median lies."""
        if self.median_low is None or self.median_high is None:
            return min(self.best, self.median), max(self.best, self.median)
        return self.median_low, self.median_high


class _Ceilings(msgspec.Struct):
    ceilings: list[MeasuredCeiling] = []
    cached: bool = False


class _Empty(msgspec.Struct):
    pass


class _Failed(msgspec.Struct):
    variant: Name | None
    kind: Name


class _Ended(msgspec.Struct):
    outcome: Name


_TYPES: dict[str, Any] = {
    "RunStarted": _RunStarted,
    "WorkerReady": _WorkerReady,
    "ProcessStarted": _ProcessStarted,
    "Built": _Built,
    "Planned": _Empty,
    "Samples": _Samples,
    "Stopped": _Empty,
    "SoloRun": _SoloRun,
    "Telemetry": _Telemetry,
    "TelemetryStarted": _TelemetryStarted,
    "CeilingsMeasured": _Ceilings,
    "Profiled": _Empty,
    "VariantFailed": _Failed,
    "RunEnded": _Ended,
}
_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in _TYPES.items()}


class Timed:
    """One variant in one file: the median of each process, and the clock of the SMs meanwhile."""

    def __init__(self) -> None:
        self.built: _Built | None = None
        self.medians_s: list[float] = []
        self.mhz: float | None = None
        self.blocks: dict[int, list[float]] = {}
        """Seconds per step by epoch, while the file is read."""
        self.clocks: list[float] = []

    def close(self, first_epochs: list[int]) -> dict[int, list[float]]:
        """What is kept; returns by process the times of blocks over the median of all."""
        by_process: dict[int, list[float]] = {}
        relative: dict[int, list[float]] = {}
        middle = 0.0
        if self.blocks:
            middle = median(chain.from_iterable(self.blocks.values()))
        for epoch, times_s in self.blocks.items():
            process = bisect_right(first_epochs, epoch) if first_epochs else epoch
            by_process.setdefault(process, []).append(median(times_s))
            relative.setdefault(process, []).extend([time_s / middle for time_s in times_s])
        self.medians_s = [median(medians) for medians in by_process.values()]
        self.mhz = median(self.clocks) if self.clocks else None
        self.blocks = {}
        self.clocks = []
        return relative


class FileFacts:
    """What one run file says of one GPU."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.host = self.scenario = self.sha256 = ""
        self.params: dict[str, Param] = {}
        self.roof: str | None = None
        self.ranks = 0
        self.smoke = False
        self.device: _Device | None = None
        self.environment: dict[str, str | None] = {}
        self.variants: dict[str, Timed] = {}
        self.first_epochs: list[int] = []
        self.ceilings: list[MeasuredCeiling] = []
        self.measured_ceilings = False
        """Whether the ceilings are of this very run."""
        self.health: dict[str, float] = {}
        self.reasons = 0
        self.readings = self.shared = 0
        """Readings of other processes while it measured, and how many of them had one."""
        self.failure: str | None = None
        self.outcome: str | None = None
        self.mhz: float | None = None
        self.memory_mhz: float | None = None
        self.spread: float | None = None
        """How much times vary within a process: 80 % of its blocks, of all variants, lie in a range
        of this share of their median. The median over processes: one that was disturbed does not
        count.
        """
        self._measuring = self._rounds_over = False
        self._names: list[str] = []
        self._batch: list[Timed] = []
        self._readings: deque[_Telemetry] = deque(maxlen=_MOST_READINGS)

    @property
    def unit(self) -> tuple[str, str]:
        """(host, GPU's UUID): a device without one has its name."""
        if self.device is None:
            return self.host, ""
        return self.host, self.device.uuid or self.device.name

    def take(self, name: str, event: Any) -> None:
        """One event, in the order of the file."""
        match name:
            case "Telemetry":
                self._read(event)
            case "Samples":
                self._time(event)
            case "RunStarted":
                job = event.request.job
                self.host, self.roof, self.smoke = event.host, job.roof, job.smoke
                self.ranks = job.ranks
                subject = job.subject or _Subject(scenario=job.job)
                self.scenario, self.sha256 = subject.scenario, subject.source_sha256
                self.params = subject.params
            case "WorkerReady":
                self.device, self.environment = event.device, event.environment
            case "ProcessStarted":
                self.first_epochs.append(event.epoch)
            case "Built":
                self._variant(event.variant).built = event
            case "Planned":
                self._measuring = True
            case "Stopped":
                self._rounds_over = True
            case "SoloRun":
                self._solo_run(event)
            case "TelemetryStarted":
                self.health = event.health
            case "CeilingsMeasured":
                self.ceilings = event.ceilings
                self.measured_ceilings = not event.cached
            case "VariantFailed":
                self.failure = event.kind if event.variant is None else self.failure
            case "RunEnded":
                self.outcome = event.outcome

    @property
    def wants_readings(self) -> bool:
        """A calibration has no rounds: its device works all the time."""
        return self._measuring or self.scenario == "calibrate"

    def close(self) -> None:
        """The clocks of the whole file, where nothing more is to come."""
        self.mhz = _middle([reading.values.sm_clock for reading in self._readings])
        self.memory_mhz = _middle([reading.values.memory_clock for reading in self._readings])
        self._readings.clear()
        by_process: dict[int, list[float]] = {}
        for timed in self.variants.values():
            for process, values in timed.close(self.first_epochs).items():
                by_process.setdefault(process, []).extend(values)
        self.spread = _spread(by_process.values())
        self._batch = []
        self.variants.pop(CONTROL, None)

    def _variant(self, name: str) -> Timed:
        return self.variants.setdefault(name, Timed())

    def _time(self, event: _Samples) -> None:
        if event.names != self._names:
            self._names = event.names
            self._batch = [self._variant(name) for name in event.names]
        batch = self._batch
        for epoch, index, time_s in zip(event.epoch, event.variant, event.times_s, strict=True):
            blocks = batch[index].blocks
            if epoch in blocks:
                blocks[epoch].append(time_s)
            else:
                blocks[epoch] = [time_s]
        for index, mhz in zip(event.variant, event.sm_mhz, strict=False):
            batch[index].clocks.append(mhz)

    def _read(self, event: _Telemetry) -> None:
        self._readings.append(event)
        if self._rounds_over:
            return
        self.reasons |= (event.reasons or 0) & HELD_BACK
        if event.others is not None:
            self.readings += 1
            self.shared += bool(event.others)

    def _solo_run(self, event: _SoloRun) -> None:
        timed = self._variant(event.variant)
        if timed.clocks:
            return
        begin = event.started + _LAG_S
        during = [
            reading.values.sm_clock
            for reading in self._readings
            if begin <= reading.t <= event.ended
        ]
        mhz = _middle(during)
        if mhz is not None:
            timed.clocks.append(mhz)


def _spread(by_process: Iterable[list[float]]) -> float | None:
    spreads = []
    for values in by_process:
        if len(values) >= _FEWEST_BLOCKS:
            tenths = quantiles(values, n=10)
            spreads.append(tenths[-1] - tenths[0])
    return median(spreads) if spreads else None


def _middle(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def read_facts(path: Path) -> FileFacts:
    """What a fleet needs of a run file. RunFileError where it is none, or is garbled; OSError."""
    facts = FileFacts(path)
    try:
        for name, line in lines_of(path, _DECODERS):
            if name == "Profiled":  # all that follows is of the profile
                facts.outcome = Outcome.DONE
                break
            if name == "Telemetry" and not facts.wants_readings:
                continue
            facts.take(name, _DECODERS[name].decode(line))
    except UNREADABLE as error:
        raise RunFileError(f"{path} is garbled: {error}") from None
    except (ValueError, IndexError) as error:
        if isinstance(error, RunFileError):
            raise
        raise RunFileError(f"{path} is garbled: its columns do not fit together") from None
    facts.close()
    return facts


def figures_of_ceilings(facts: FileFacts) -> list[MeasuredCeiling]:
    """Ceilings that this very run measured: others may be of another week."""
    if not facts.measured_ceilings:
        return []
    return [
        ceiling
        for ceiling in facts.ceilings
        if ceiling.source == MEASURED and (ceiling.roof not in COSTS or ceiling.roof == LAUNCH)
    ]
