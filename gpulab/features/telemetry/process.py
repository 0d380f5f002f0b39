"""The telemetry process, as the session sees it: started, told whom to sample, stopped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from gpulab.core.events import Event, WorkerReady
from gpulab.core.limits import TELEMETRY_ON
from gpulab.core.wire import decode, encode
from gpulab.features.telemetry.events import (
    SamplingTarget,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
)
from gpulab.features.telemetry.findings import driver_did_not_answer, telemetry_process_ended
from gpulab.proc.pipes import Lines, pipe, read_available
from gpulab.proc.spawn import DEVNULL, PIPE, TimeoutExpired, spawn
from gpulab.session.streams import Stream

TELEMETRY = (sys.executable, "-P", "-m", "gpulab.features.telemetry")
_GRACE_S = 0.3


class TelemetryProcess:
    """Never waits for the process, which may hang in the driver. OSError: cannot start."""

    def __init__(self, gpu: str, command: Sequence[str] = TELEMETRY) -> None:
        """`gpu`: that of the run, or an index or UUID."""
        self._gpu = gpu
        self._resources = ExitStack()
        self._lines = Lines()
        self._started = self._stopped = self._targeted = False
        with self._resources, ExitStack() as process_end:
            fd, events_w = pipe(self._resources, process_end)
            self._process = spawn(
                [*command, str(events_w)],
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                pass_fds=[events_w],
                start_new_session=True,
            )
            self._resources = self._resources.pop_all()
        self.stream = Stream(fd, lambda: self._take(fd))

    def target(self, ready: WorkerReady, root: int) -> None:
        """Begin, now that it is known what the worker runs on: process `root`, and all below."""
        worker_gpu = ready.device.uuid
        gpu = worker_gpu if self._gpu == TELEMETRY_ON else self._gpu
        self._tell(encode(SamplingTarget(worker=root, gpu=gpu, worker_gpu=worker_gpu)))
        self._targeted = True

    def stop(self) -> list[Event]:
        """End it; what it still sent, and its end. One that hangs in the driver is killed."""
        # else its end is still to be read
        self._stopped = self._stopped or self._process.poll() is None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_GRACE_S)
        except TimeoutExpired:
            self._process.kill()
            with suppress(TimeoutExpired):
                self._process.wait(_GRACE_S)
        events: list[Event] = []
        more = True
        while more:
            batch, more = self.stream.take()
            more = more and bool(batch)
            events += batch
        self._resources.close()
        if self._targeted and not self._started:
            events.append(TelemetryStarted(no_gpu_reason=driver_did_not_answer()))
        return [*events, TelemetryEnded()]

    def _take(self, fd: int) -> tuple[list[Event], bool]:
        data = read_available(fd)
        if data is None:
            return [], True
        events: list[Event] = []
        for line in self._lines.take(data):
            with suppress(ValueError):
                event = decode(line)
                self._started = self._started or isinstance(event, TelemetryStarted)
                if event is not None:
                    events.append(event)
        if not data and not self._stopped:
            self._stopped = True
            reason = telemetry_process_ended()
            if self._started:
                events.append(TelemetryLost(reason=reason))
            else:
                events.append(TelemetryStarted(no_gpu_reason=reason))
            self._started = True
        return events, bool(data)

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()
