"""Ceilings kept between runs: they hold for one device in one configuration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from gpulab.core.events import Built, Event, RunEnded, RunInvalid, WorkerReady
from gpulab.core.host import host_name
from gpulab.core.jobs import Calibrate, RunRequest, ScenarioFile, TimedJob, subject_of
from gpulab.core.limits import TELEMETRY_OFF
from gpulab.core.payloads import CACHE, COSTS, HOST_LINKS, LAUNCH, MEMORY, RANK_LINKS
from gpulab.core.statuses import CeilingChoice, Outcome
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.telemetry.events import TelemetryStarted
from gpulab.session.store import Store

_KIND = "ceilings"
_CPU_HOLDS = timedelta(hours=1)
"""A shared machine drifts: a run whose own rounds do not measure all that it is held against
measures them again.
"""


class CeilingCache:
    """Watches one run: looks up what is known of its device, and saves what the run measures."""

    def __init__(self, request: RunRequest) -> None:
        job, subject = request.job, subject_of(request.job)
        self._measures_all = isinstance(job, Calibrate)
        self._used = not isinstance(job, TimedJob) or job.ceilings != CeilingChoice.NONE
        self._sampling = request.telemetry != TELEMETRY_OFF
        # What a scenario does to its own process, such as waiting for every launch, is no property
        # of the device.
        self._is_of_device = not (isinstance(subject, ScenarioFile) and subject.env)
        self._ready: WorkerReady | None = None
        self._sampled: TelemetryStarted | None = None
        self._measured: CeilingsMeasured | None = None
        """The run's own, which nothing older may follow."""
        self._known: CeilingsMeasured | None = None
        """Of earlier runs."""
        self._needed = {MEMORY, CACHE, LAUNCH}
        """Roofs, and the dtypes of the work that variants declare."""
        if isinstance(job, TimedJob) and job.roof in HOST_LINKS:
            self._needed.add(job.roof)

    def on_event(self, event: Event) -> CeilingsMeasured | None:
        """Take an event in; what is known of the device, as soon as it is clear which one it is."""
        if not self._used:
            return None
        match event:
            case CeilingsMeasured():
                self._measured = event
            case Built(flops=flops, bytes=moved, dtype=dtype) if flops or moved:
                self._needed.add(dtype or "fp32")
            case WorkerReady():
                self._ready = event
                return None if self._sampling and self._sampled is None else self._look_up()
            case TelemetryStarted():
                self._sampled = event
                return self._look_up()
            case RunInvalid():
                self._is_of_device = False
            case RunEnded(outcome=outcome) if outcome != Outcome.FAILED:
                # of a run that was interrupted too: the next one need not wait for them again
                self._save()
        return None

    @property
    def is_enough(self) -> bool:
        """Return whether earlier runs have measured all that can limit the work of this one."""
        if self._known is None:
            return False
        keys = {ceiling.roof for ceiling in self._known.ceilings} | {
            ceiling.kind for ceiling in self._known.ceilings
        }
        return self._known.complete or self._needed <= keys

    @property
    def _device(self) -> str | None:
        """Return the key of what ceilings depend on beside the power limit, as text."""
        if self._ready is None:
            return None
        device, versions = self._ready.device, self._ready.environment
        parts = {
            "gpulab": (versions.get("gpulab") or "").partition("+")[0],
            "device": device.uuid or device.name,
            "driver": versions.get("driver"),
            "torch": versions.get("torch"),
            "cupy": versions.get("cupy-cuda13x") or versions.get("cupy-cuda12x"),
            "threads": device.threads,
        }
        if not device.uuid:
            parts["host"] = host_name()
        return msgspec.json.encode(parts).decode()

    @property
    def _power_limit(self) -> str | None:
        """In watts; None where nobody read it."""
        sampled, uuid = self._sampled, self._ready.device.uuid if self._ready else None
        if sampled is None or uuid is None or sampled.uuid != uuid:
            return None
        limit = sampled.limits.get("power")
        return None if limit is None else str(limit)

    def _look_up(self) -> CeilingsMeasured | None:
        """Return the ceilings of an earlier run, the last of any power limit where nobody read it;
        of a CPU only those of the last hour.
        """
        device, ready = self._device, self._ready
        if device is None or ready is None or self._measured or self._measures_all:
            return None
        known: list[CeilingsMeasured] = []
        with Store() as store:
            known = store.kept(_KIND, device, CeilingsMeasured, self._power_limit)
        if not ready.device.on_gpu:
            known = [each for each in known if _is_within(each, _CPU_HOLDS)]
        if not known:
            return None
        measured = self._known = known[-1]
        return CeilingsMeasured(
            ceilings=measured.ceilings,
            at=measured.at,
            cache_bytes=measured.cache_bytes,
            cached=True,
        )

    def _save(self) -> None:
        device, ready, measured = self._device, self._ready, self._measured
        if device is None or ready is None or measured is None or not self._is_of_device:
            return
        if measured.cached:
            return
        if not measured.complete:
            if self._measures_all and ready.device.on_gpu:  # it was cut short
                return
            # of a CPU none is kept for longer than the others
            measured = _merged(measured, self._known if ready.device.on_gpu else None)
        if not measured.ceilings:
            return
        with Store() as store:
            store.keep(_KIND, device, self._power_limit or "", measured)


def _is_within(measured: CeilingsMeasured, most: timedelta) -> bool:
    if measured.at is None:
        return False
    return datetime.now(UTC) - datetime.fromisoformat(measured.at) < most


def _merged(measured: CeilingsMeasured, known: CeilingsMeasured | None) -> CeilingsMeasured:
    """Merge the steady ceilings of a pass, which left out what its work did not need, with those
    known before it.
    """
    steady = {
        ceiling.key: ceiling
        for ceiling in measured.ceilings
        if (ceiling.steady or ceiling.roof in COSTS) and ceiling.roof not in RANK_LINKS
    }
    if known is None:
        return replace(measured, ceilings=tuple(steady.values()))
    before = {ceiling.key: ceiling for ceiling in known.ceilings}
    return replace(measured, ceilings=tuple({**before, **steady}.values()), complete=known.complete)
