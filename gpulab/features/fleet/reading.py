"""What a fleet needs of one run file: who measured, times, ceilings, clocks."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from gpulab.core.events import (
    Built,
    Event,
    Planned,
    ProcessStarted,
    RunEnded,
    RunStarted,
    Samples,
    Stopped,
    VariantFailed,
    WorkerReady,
)
from gpulab.core.jobs import Calibrate, Measure, TimeFunctions
from gpulab.core.machine import Device
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.telemetry.events import HELD_BACK, Telemetry, TelemetryStarted
from gpulab.scenario import CONTROL, Param

if TYPE_CHECKING:
    from gpulab.features.roofline.events import Ceiling

_FEWEST_BLOCKS = 8


class FileFacts:
    """The facts of one run file about one GPU."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.host = ""
        self.job: Measure | TimeFunctions | None = None
        self.device: Device | None = None
        self.built: dict[str, Built] = {}
        self.medians_s: dict[str, list[float]] = {}
        """Of each variant, one of each process."""
        self.sm_mhz: dict[str, float] = {}
        """Of each variant, where its blocks have it."""
        self.telemetry_mhz: dict[str, float] = {}
        """By the field of telemetry, over the whole measurement."""
        self.ceilings: Sequence[Ceiling] = ()
        self.own_ceilings: Sequence[Ceiling] = ()
        """Those that this very run measured: others may be of another week."""
        self.health: Mapping[str, float] = {}
        self.reasons = 0
        self.shared: list[bool] = []
        """Of each look at the processes while it measured, whether there was another one."""
        self.failure: str | None = None
        self.outcome: str | None = None
        self.spread: float | None = None
        """How much times vary within a process: 80 % of its blocks, of all variants, lie in a range
        of this share of their median. The median over processes: one that was disturbed does not
        count.
        """
        self._measuring = False
        self._first_epochs: list[int] = []
        self._blocks: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        """Seconds per step by variant and process, until the end of the file."""
        self._clocks: dict[str, list[float]] = defaultdict(list)
        self._readings: dict[str, list[float]] = defaultdict(list)

    @property
    def unit(self) -> tuple[str, str]:
        """(host, GPU's UUID): a device without one has its name."""
        if self.device is None:
            return self.host, ""
        return self.host, self.device.uuid or self.device.name

    @property
    def subject(self) -> tuple[str, str, tuple[tuple[str, Param], ...]]:
        """(scenario, SHA-256 of its source, parameters)."""
        if self.job is None:
            return "", "", ()
        subject = self.job.subject
        params = self.job.subject.params if isinstance(self.job, Measure) else {}
        return subject.scenario, subject.source_sha256, tuple(sorted(params.items()))

    def take(self, event: Event) -> None:
        """One event, in the order of the file."""
        match event:
            case RunStarted():
                job = event.request.job
                self.host = event.host
                self.job = job if isinstance(job, (Measure, TimeFunctions)) else None
                # it has no rounds: its device works all the time
                self._measuring = isinstance(job, Calibrate)
            case WorkerReady():
                self.device = event.device
            case ProcessStarted():
                self._first_epochs.append(event.epoch)
            case Built():
                self.built[event.variant] = event
            case Planned():
                self._measuring = True
            case Stopped():
                self._measuring = False
            case Samples():
                self._time(event)
            case Telemetry() if self._measuring:
                self._read(event)
            case TelemetryStarted():
                self.health = event.health
            case CeilingsMeasured():
                self.ceilings = event.ceilings
                self.own_ceilings = () if event.cached else event.ceilings
            case VariantFailed(variant=None):
                self.failure = event.kind
            case RunEnded():
                self.outcome = event.outcome

    def close(self) -> None:
        """Nothing more is to come: of blocks and readings the medians are kept."""
        within: dict[int, list[float]] = defaultdict(list)
        for name, blocks in self._blocks.items():
            middle = median(chain.from_iterable(blocks.values()))
            for process, times_s in blocks.items():
                within[process] += [time_s / middle for time_s in times_s]
            if name != CONTROL:
                self.medians_s[name] = [median(times_s) for times_s in blocks.values()]
        tenths = [quantiles(each, n=10) for each in within.values() if len(each) >= _FEWEST_BLOCKS]
        self.spread = median_of([each[-1] - each[0] for each in tenths])
        self.sm_mhz = {name: median(clocks) for name, clocks in self._clocks.items()}
        self.telemetry_mhz = {field: median(values) for field, values in self._readings.items()}
        self._blocks.clear()
        self._clocks.clear()
        self._readings.clear()

    def _time(self, event: Samples) -> None:
        for epoch, index, time_s in zip(event.epoch, event.variant, event.times_s, strict=True):
            process = bisect_right(self._first_epochs, epoch) if self._first_epochs else epoch
            self._blocks[event.names[index]][process].append(time_s)
        for index, mhz in zip(event.variant, event.sm_mhz, strict=False):
            self._clocks[event.names[index]].append(mhz)

    def _read(self, event: Telemetry) -> None:
        for field in event.values.keys() & {"sm_clock", "memory_clock"}:
            self._readings[field].append(event.values[field])
        self.reasons |= (event.reasons or 0) & HELD_BACK
        if event.others is not None:
            self.shared.append(bool(event.others))


def median_of(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def read_facts(path: Path) -> FileFacts:
    """Return what a fleet needs of a run file. RunFileError if it is none, or garbled; OSError."""
    recording = read_run_file(path)
    if recording.garbled:
        raise RunFileError(f"{path} is garbled in line {recording.garbled[0]}")
    facts = FileFacts(path)
    for event in recording.events:
        facts.take(event)
    facts.close()
    return facts
