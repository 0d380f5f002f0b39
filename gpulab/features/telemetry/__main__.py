"""`python -m gpulab.features.telemetry FD`: samples the worker's device and the host, and sends
events to FD. With `probe` instead of FD: what the driver reports of itself, as JSON on stdout.

Lines on stdin: first who is to be sampled; its end is the end.
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
from msgspec.structs import replace

from gpulab.catalog.findings import run_on_cpu
from gpulab.core.events import Event
from gpulab.core.findings import Finding
from gpulab.core.machine import DriverProbe
from gpulab.core.wire import encode
from gpulab.features.telemetry.events import (
    SamplingTarget,
    Telemetry,
    TelemetryLost,
    TelemetryStarted,
)
from gpulab.features.telemetry.fields import RATE_HZ
from gpulab.features.telemetry.findings import nvml_client_broken, telemetry_failed

if TYPE_CHECKING:
    from gpulab.features.telemetry.gpu import Gpu

_SHORTEST_S = 0.05
"""From the start to the first reading, and at least to the last one: the system counts CPU time in
hundredths of a second.
"""


@dataclass(frozen=True)
class _Use:
    """The use of a process since it started. `cpu_s`: with the processes that it waited for."""

    cpu_s: float = 0.0
    switches: int = 0
    rss: int = 0
    """0: it has ended, and nobody has waited for it yet."""


class Host:
    """Samples the machine and a tree of processes, from now on."""

    def __init__(self, root: int, now: float) -> None:
        self._root: psutil.Process | None = None
        self._frequency_at = 0.0
        with suppress(psutil.Error):
            self._root = psutil.Process(root)
        self._at, self._before = now, self._uses()
        psutil.cpu_percent()

    def sample(self, now: float) -> dict[str, float]:
        """Return what is known: percent of a core (machine and others: of all), bytes, switches per
        second, MHz.
        """
        values = {"machine_cpu": psutil.cpu_percent()}
        if now - self._frequency_at >= 1.0:  # it asks every core of the machine
            self._frequency_at = now
            frequency = psutil.cpu_freq()
            if frequency is not None and frequency.current:
                values["frequency"] = frequency.current
        before, uses = self._before, self._uses()
        passed_s = now - self._at
        self._at, self._before = now, uses
        if not uses or not before or passed_s <= 0:
            return values
        # The sum: what a process used passes to its parent at its end.
        cpu_s = sum(use.cpu_s for use in uses.values())
        cpu_s -= sum(use.cpu_s for use in before.values())
        values["worker_cpu"] = max(0.0, 100 * cpu_s / passed_s)
        own = values["worker_cpu"] / (psutil.cpu_count() or 1)
        values["others_cpu"] = max(0.0, values["machine_cpu"] - own)
        running = {pid: use for pid, use in uses.items() if use.rss}
        if running:
            values["rss"] = float(max(use.rss for use in running.values()))
            switches = sum(
                use.switches - before.get(pid, _Use()).switches for pid, use in running.items()
            )
            values["switches"] = switches / passed_s
        return values

    def _uses(self) -> dict[int, _Use]:
        """By process; empty once the root is gone."""
        if self._root is None:
            return {}
        try:
            processes = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            self._root = None
            return {}
        uses = {}
        for process in processes:
            with suppress(psutil.Error), process.oneshot():  # it may have ended
                switches = process.num_ctx_switches().involuntary
                rss = process.memory_info().rss
                uses[process.pid] = _Use(sum(process.cpu_times()[:4]), switches, rss)
        return uses


class Sampler:
    """Ticks until stdin ends."""

    def __init__(self, target: SamplingTarget, fd: int) -> None:
        self._fd = fd
        self._last = monotonic()
        self._host = Host(target.worker, self._last)
        self._gpu, started = _open(target)
        self._emit(started)

    def run(self) -> None:
        period = 1 / RATE_HZ
        due = monotonic() + _SHORTEST_S
        while True:
            ready, _, _ = select.select([0], [], [], max(0.0, due - monotonic()))
            if ready:
                self._end()
                return
            self._tick()
            # A slow driver makes fewer samples, never a queue of them.
            due = max(due + period, monotonic())

    def _tick(self) -> None:
        began = monotonic()
        values = self._host.sample(began)
        reading = self._read_gpu()
        self._emit(replace(reading, t=monotonic(), values=values | reading.values))
        # What happens while a reading is taken may be in it or not: so the next one covers that
        # time too.
        self._last = began

    def _read_gpu(self) -> Telemetry:
        """Return what is read of the GPU; nothing where there is none, or none any more."""
        if self._gpu is not None:
            reading = self._gpu.read(self._last)
            if isinstance(reading, Telemetry):
                return reading
            self._gpu = None
            self._emit(TelemetryLost(reason=reading))
        return Telemetry(since=self._last, values={})

    def _end(self) -> None:
        """Send what the host did since the last reading, where that is long enough."""
        now = monotonic()
        if now - self._last >= _SHORTEST_S:
            self._emit(Telemetry(t=now, since=self._last, values=self._host.sample(now)))

    def _emit(self, event: Event) -> None:
        try:
            os.write(self._fd, encode(event))
        except BrokenPipeError:
            os._exit(0)


def _open(target: SamplingTarget) -> tuple[Gpu | None, TelemetryStarted]:
    if target.gpu is None:
        return None, TelemetryStarted(no_gpu_reason=run_on_cpu())
    try:
        from gpulab.features.telemetry.gpu import NoGpuError, open_gpu
    except ImportError as error:
        return None, TelemetryStarted(no_gpu_reason=_broken_client(error))
    try:
        return open_gpu(target.gpu, target)
    except NoGpuError as error:
        return None, TelemetryStarted(no_gpu_reason=error.reason)


def _probe() -> DriverProbe:
    try:
        from gpulab.features.telemetry.gpu import probe
    except ImportError as error:
        return DriverProbe(problem=_broken_client(error))
    return probe()


def _broken_client(error: ImportError) -> Finding:
    return nvml_client_broken(message=str(error))


def main() -> None:
    if sys.argv[1] == "probe":
        sys.stdout.buffer.write(msgspec.json.encode(_probe()))
        return
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
        reason = telemetry_failed(message=f"{type(error).__name__}: {error}")
        os.write(fd, encode(TelemetryLost(reason=reason)))


if __name__ == "__main__":
    main()
