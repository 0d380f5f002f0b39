"""The telemetry process, as the session sees it: started with the run, told whom to sample, stopped with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from gpulab.model.events import AnyEvent, TelemetryLost, TelemetryStarted, WorkerReady
from gpulab.model.request import Target
from gpulab.model.wire import decode, encode

TELEMETRY = (sys.executable, "-P", "-m", "gpulab.telemetry")
_CHUNK = 1 << 16
_PATIENCE_S = 0.3


class Sampler:
    """Never waits for the process: a driver that hangs holds it, and nothing else."""

    def __init__(self, wanted: str, command: Sequence[str] = TELEMETRY) -> None:
        self._wanted = wanted
        self.fd, theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.fd, False)
        self._partial = b""
        self._started = self._stopped = self._targeted = False
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs],
                start_new_session=True,
            )
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(theirs)

    def target(self, ready: WorkerReady) -> None:
        """Begin, now that it is known what the worker runs on."""
        on = ready.device.uuid
        self._tell(encode(Target(worker=ready.pid, gpu=on if self._wanted == "on" else self._wanted, on=on)))
        self._targeted = True

    def switch(self, *, on: bool) -> None:
        """Pause, or go on."""
        if self._targeted:
            self._tell(b"resume\n" if on else b"pause\n")

    def take(self) -> tuple[list[AnyEvent], bool]:
        """(what came, whether more may come)."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return [], True
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        found: list[AnyEvent] = []
        for line in filter(None, lines):
            with suppress(ValueError):
                event = decode(line)
                self._started = self._started or isinstance(event, TelemetryStarted)
                found += [] if event is None else [event]
        if not data and not self._stopped:
            self._stopped = True
            why = "the telemetry process ended"
            found.append(TelemetryLost(reason=why) if self._started else TelemetryStarted(why=why))
        return found, bool(data)

    def stop(self) -> list[AnyEvent]:
        """End it; what it still sent. One that hangs in the driver is killed, and not waited for."""
        self._stopped = True
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_S)
        found: list[AnyEvent] = []
        more = True
        while more:
            events, more = self.take()
            more = more and bool(events)
            found += events
        os.close(self.fd)
        if self._targeted and not self._started:
            found.append(TelemetryStarted(why="the driver did not answer before the run ended"))
        return found

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()
