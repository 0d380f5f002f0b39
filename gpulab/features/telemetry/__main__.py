"""`python -m gpulab.features.telemetry FD`: samples the worker's device and the host, and sends
events to FD.

Lines on stdin: first who is to be sampled, later "pause" and "resume"; its end is the end.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
import psutil

from gpulab.core.events import (
    Event,
    SamplingTarget,
    Telemetry,
    TelemetryLost,
    TelemetryStarted,
    TelemetrySwitched,
)
from gpulab.core.finding import finding
from gpulab.core.wire import encode
from gpulab.features.telemetry.fields import RATE_HZ

if TYPE_CHECKING:
    from gpulab.features.telemetry.gpu import Gpu, Xids


@dataclass(frozen=True)
class _Use:
    """What a process has used since it started."""

    cpu_s: float
    switches: int
    rss: int


class Host:
    """Samples the whole machine and a worker: its process, and those that it forks to measure
    in.
    """

    def __init__(self, worker: int) -> None:
        self._worker: psutil.Process | None = None
        self._frequency_at = 0.0
        self._before: tuple[float, dict[int, _Use]] | None = None
        with suppress(psutil.Error):
            self._worker = psutil.Process(worker)
        psutil.cpu_percent()

    def sample(self, now: float) -> dict[str, float]:
        """Percent of a core (of all cores for the machine), bytes, switches per second, MHz; what
        is known of it.
        """
        values = {"machine_cpu": psutil.cpu_percent()}
        if now - self._frequency_at >= 1.0:  # it asks every core of the machine
            self._frequency_at = now
            frequency = psutil.cpu_freq()
            if frequency is not None and frequency.current:
                values["frequency"] = frequency.current
        uses = self._uses()
        if not uses:
            return values
        before, self._before = self._before, (now, uses)
        values["rss"] = float(max(use.rss for use in uses.values()))
        if before is None or now <= before[0]:
            return values
        seconds, nothing = now - before[0], _Use(0.0, 0, 0)
        # Of a process that has ended meanwhile its last part is not known.
        changes = [(use, before[1].get(pid, nothing)) for pid, use in uses.items()]
        values["worker_cpu"] = (
            100 * sum(use.cpu_s - earlier.cpu_s for use, earlier in changes) / seconds
        )
        values["switches"] = (
            sum(use.switches - earlier.switches for use, earlier in changes) / seconds
        )
        return values

    def _uses(self) -> dict[int, _Use]:
        """By process; empty once the worker is gone."""
        if self._worker is None:
            return {}
        try:
            processes = [self._worker, *self._worker.children(recursive=True)]
        except psutil.Error:
            self._worker = None
            return {}
        return {process.pid: use for process in processes if (use := _use_of(process)) is not None}


def _use_of(process: psutil.Process) -> _Use | None:
    """None of one that has ended, perhaps without having been collected."""
    try:
        with process.oneshot():
            times, rss = process.cpu_times(), process.memory_info().rss
            return (
                _Use(times.user + times.system, process.num_ctx_switches().involuntary, rss)
                if rss
                else None
            )
    except psutil.Error:
        return None


class Sampler:
    """Ticks until stdin ends."""

    def __init__(self, target: SamplingTarget, fd: int) -> None:
        self._fd = fd
        self._host = Host(target.worker)
        self._gpu: Gpu | None = None
        self._others_since = self._last = monotonic()
        self._unsupported: dict[str, str] = {}
        self._xids: Xids | None = None
        self._on = True
        self._emit(self._open(target))

    def run(self) -> None:
        period = 1 / RATE_HZ
        due = monotonic() + period
        while True:
            ready, _, _ = select.select([0], [], [], max(0.0, due - monotonic()))
            if ready:
                commands = os.read(0, 4096)
                if not commands:
                    return
                for command in commands.split():
                    self._switch(command == b"resume")
                continue
            if self._on:
                self._tick()
            # A slow driver makes fewer samples, never a queue of them.
            due = max(due + period, monotonic())

    def _switch(self, on: bool) -> None:
        self._on, self._last = on, monotonic()
        if on and self._gpu is not None:
            self._gpu.forget()
        self._emit(TelemetrySwitched(on=on))

    def _tick(self) -> None:
        began = monotonic()
        values = self._host.sample(began)
        reasons = others = others_since = None
        if self._gpu is not None:
            from gpulab.features.telemetry.gpu import GpuLostError

            try:
                gpu_values, reasons = self._gpu.sample()
                values |= gpu_values
                others = self._gpu.others
            except GpuLostError as error:
                self._gpu = None
                self._emit(TelemetryLost(reason=error.reason))
        now = monotonic()
        if others is not None:
            others_since, self._others_since = self._others_since, began
        unsupported = {}
        if self._gpu is not None and self._gpu.unsupported_fields != self._unsupported:
            unsupported = self._unsupported = self._gpu.unsupported_fields
        self._emit(
            Telemetry(
                t=now,
                since=self._last,
                values=values,
                reasons=reasons,
                others=others,
                others_since=others_since,
                unsupported=unsupported,
                problems=self._xids.take() if self._gpu is not None and self._xids else [],
            )
        )
        # What happens while a reading is taken may be in it or not: so the next one covers that
        # time too.
        self._last = began

    def _open(self, target: SamplingTarget) -> TelemetryStarted:
        if target.gpu is None:
            return TelemetryStarted(no_gpu_reason=finding("run_on_cpu"))
        try:
            import pynvml

            from gpulab.features.telemetry.gpu import (
                Gpu,
                NoGpuError,
                Xids,
                call,
                connect,
                fault,
                find,
                health,
                same,
            )
        except ImportError as error:
            return TelemetryStarted(no_gpu_reason=finding("nvml_client_broken", message=str(error)))
        try:
            connect()
            handle = find(target.gpu)
            uuid = call(pynvml.nvmlDeviceGetUUID, handle)
            self._gpu = Gpu(handle, target.worker, own=same(uuid, target.worker_gpu))
            facts, problems = health(handle)
            self._xids = Xids(handle)
            self._unsupported = self._gpu.unsupported_fields
            return TelemetryStarted(
                gpu=call(pynvml.nvmlDeviceGetName, handle),
                uuid=uuid,
                driver=call(pynvml.nvmlSystemGetDriverVersion),
                unsupported=self._unsupported,
                limits=self._gpu.limits(),
                health=facts,
                problems=problems,
            )
        except NoGpuError as error:
            self._gpu = None
            return TelemetryStarted(no_gpu_reason=error.reason)
        except pynvml.NVMLError as error:
            self._gpu = None
            return TelemetryStarted(no_gpu_reason=fault(error))

    def _emit(self, event: Event) -> None:
        try:
            os.write(self._fd, encode(event))
        except BrokenPipeError:
            os._exit(0)


def main() -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return
        line += byte
    fd = int(sys.argv[1])
    try:
        Sampler(msgspec.json.decode(line, type=SamplingTarget), fd).run()
    except Exception as error:
        reason = finding("telemetry_failed", message=f"{type(error).__name__}: {error}")
        os.write(fd, encode(TelemetryLost(reason=reason)))


if __name__ == "__main__":
    main()
