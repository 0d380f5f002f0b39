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

from gpulab.model.events import Event, Telemetry, TelemetryLost, TelemetryStarted, TelemetrySwitched
from gpulab.model.request import Target
from gpulab.model.telemetry import RATE_HZ
from gpulab.model.wire import encode
from gpulab.telemetry.host import Host

if TYPE_CHECKING:
    from gpulab.telemetry.gpu import Gpu
    from gpulab.telemetry.health import Xids


class Sampler:
    """Ticks until stdin ends."""

    def __init__(self, target: Target, fd: int) -> None:
        self._fd = fd
        self._host = Host(target.worker)
        self._gpu: Gpu | None = None
        self._others_since = self._last = monotonic()
        self._known: dict[str, str] = {}
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
                found, reasons = self._gpu.sample()
                values |= found
                others = self._gpu.others
            except GpuLostError as error:
                self._gpu = None
                self._emit(TelemetryLost(reason=str(error)))
        now = monotonic()
        if others is not None:
            others_since, self._others_since = self._others_since, began
        new = {}
        if self._gpu is not None and self._gpu.never != self._known:
            new = self._known = self._gpu.never
        self._emit(
            Telemetry(
                t=now,
                since=self._last,
                values=values,
                reasons=reasons,
                others=others,
                others_since=others_since,
                unsupported=new,
                problems=self._xids.seen() if self._gpu is not None and self._xids else [],
            )
        )
        # What happens while a reading is taken may be in it or not: so the next one is of that time too.
        self._last = began

    def _open(self, target: Target) -> TelemetryStarted:
        if target.gpu is None:
            return TelemetryStarted(why="the run is on the CPU")
        try:
            import pynvml

            from gpulab.telemetry import nvml
            from gpulab.telemetry.gpu import Gpu
            from gpulab.telemetry.health import Xids, health
        except ImportError as error:
            return TelemetryStarted(why=f"nvidia-ml-py cannot be used: {error}")
        try:
            nvml.connect()
            handle = nvml.find(target.gpu)
            uuid = nvml.call(pynvml.nvmlDeviceGetUUID, handle)
            self._gpu = Gpu(handle, target.worker, ours=nvml.same(uuid, target.on))
            facts, problems = health(handle)
            self._xids = Xids(handle)
            self._known = self._gpu.never
            return TelemetryStarted(
                gpu=nvml.call(pynvml.nvmlDeviceGetName, handle),
                uuid=uuid,
                driver=nvml.call(pynvml.nvmlSystemGetDriverVersion),
                unsupported=self._known,
                limits=self._gpu.limits(),
                health=facts,
                problems=problems,
            )
        except nvml.NoGpuError as error:
            self._gpu = None
            return TelemetryStarted(why=str(error))
        except pynvml.NVMLError as error:
            self._gpu = None
            return TelemetryStarted(why=nvml.explain(error))

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
        Sampler(msgspec.json.decode(line, type=Target), fd).run()
    except Exception as error:
        os.write(fd, encode(TelemetryLost(reason=f"the telemetry process failed: {type(error).__name__}: {error}")))


if __name__ == "__main__":
    main()
