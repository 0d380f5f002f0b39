"""`python -m gpulab.telemetry FD`: samples the worker's device and the host, and sends events to FD.

Lines on stdin: first who is to be sampled, later "pause" and "resume"; its end is the end.
"""

from __future__ import annotations

import os
import select
import sys
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from gpulab.protocol.events import Event, Telemetry, TelemetryLost, TelemetryStarted, TelemetrySwitched
from gpulab.protocol.finding import finding
from gpulab.protocol.telemetry_events import SamplingTarget
from gpulab.protocol.telemetry_fields import RATE_HZ
from gpulab.protocol.wire import encode
from gpulab.telemetry.host import Host

if TYPE_CHECKING:
    from gpulab.telemetry.gpu import Gpu
    from gpulab.telemetry.health import Xids


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
            from gpulab.telemetry.gpu import GpuLostError

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
        # What happens while a reading is taken may be in it or not: so the next one covers that time too.
        self._last = began

    def _open(self, target: SamplingTarget) -> TelemetryStarted:
        if target.gpu is None:
            return TelemetryStarted(no_gpu_reason=finding("run_on_cpu"))
        try:
            import pynvml

            from gpulab.telemetry import nvml
            from gpulab.telemetry.gpu import Gpu
            from gpulab.telemetry.health import Xids, health
        except ImportError as error:
            return TelemetryStarted(no_gpu_reason=finding("nvml_client_broken", message=str(error)))
        try:
            nvml.connect()
            handle = nvml.find(target.gpu)
            uuid = nvml.call(pynvml.nvmlDeviceGetUUID, handle)
            self._gpu = Gpu(handle, target.worker, own=nvml.same(uuid, target.worker_gpu))
            facts, problems = health(handle)
            self._xids = Xids(handle)
            self._unsupported = self._gpu.unsupported_fields
            return TelemetryStarted(
                gpu=nvml.call(pynvml.nvmlDeviceGetName, handle),
                uuid=uuid,
                driver=nvml.call(pynvml.nvmlSystemGetDriverVersion),
                unsupported=self._unsupported,
                limits=self._gpu.limits(),
                health=facts,
                problems=problems,
            )
        except nvml.NoGpuError as error:
            self._gpu = None
            return TelemetryStarted(no_gpu_reason=error.reason)
        except pynvml.NVMLError as error:
            self._gpu = None
            return TelemetryStarted(no_gpu_reason=nvml.fault(error))

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
