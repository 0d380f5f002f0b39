"""A run under way as a source of its events: a thread of its own appends to the log, and a face
takes what is there.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from gpulab.core.events import Event, FindingMade, RunEnded, RunStarted
from gpulab.core.failures import run_file_cut, worker_not_run
from gpulab.core.findings import Finding
from gpulab.core.host import host_name
from gpulab.core.jobs import RunRequest
from gpulab.core.limits import TELEMETRY_OFF
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import FailureKind, Outcome, Stage
from gpulab.features.telemetry.events import TelemetryStarted
from gpulab.features.telemetry.findings import telemetry_not_started
from gpulab.features.telemetry.process import TelemetryProcess
from gpulab.proc.pipes import Bell
from gpulab.session.streams import Stream, Streams
from gpulab.session.transcript import failure_of_whole_run


class EventLog:
    """The run file only grows; the face takes each event once. A disk that is full ends the file,
    never the run.
    """

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self._recording = True
        self._events: deque[Event] = deque()

    @property
    def path(self) -> Path:
        return self._file.path

    def append(self, *events: Event) -> None:
        if self._recording and events:
            try:
                self._file.append(events)
            except OSError as error:
                self._recording = False
                self._events.append(FindingMade(finding=run_file_cut(message=str(error))))
        self._events.extend(events)

    def take(self) -> list[Event]:
        """Everything since the last call. Safe beside an `append` of another thread."""
        events = []
        with suppress(IndexError):
            while True:
                events.append(self._events.popleft())
        return events

    def close(self) -> None:
        self._file.close()


class LiveSource(ABC):
    """Runs one request: `start`, then `take` until it has `ended`; `cancel` at any time."""

    findings: Sequence[Finding] = ()

    def __init__(self, request: RunRequest, run_file: RunFile) -> None:
        self._request = request
        self._log = EventLog(run_file)
        self._telemetry: TelemetryProcess | None = None
        self._cancelling = Bell()
        self._over = threading.Event()
        """Whether the last event is there to be taken."""
        self.ended = False
        """Whether everything there will ever be has been taken."""
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)

    @property
    def path(self) -> Path:
        return self._log.path

    def start(self) -> None:
        self._thread.start()

    def take(self) -> list[Event]:
        """All events since the last call, in order."""
        over = self._over.is_set()  # asked before: what comes between is for the next call
        events = self._log.take()
        self.ended = over
        return events

    def now(self) -> float:
        """The present on the clock of the events, in seconds."""
        return monotonic()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, at most so long; returns whether it has come. The last events are still
        to be taken.
        """
        return self._over.wait(timeout_s)

    def cancel(self) -> None:
        """Stop what runs and all it started. What was measured stays; the end arrives as an event.

        For signal handlers too: it waits for nothing.
        """
        self._cancelling.ring()

    @abstractmethod
    def _work(self) -> list[Event]:
        """Run it, and append its events; returns the last ones."""

    @abstractmethod
    def _append(self, *events: Event) -> None:
        """Take events in, and log them."""

    def _run(self) -> None:
        try:
            self._append(
                RunStarted(
                    request=self._request, at=datetime.now(UTC).isoformat(), host=host_name()
                )
            )
            self._append(*self._work())
        except Exception as error:  # of the lab's own: the run has an end all the same
            failure = worker_not_run(message=f"{type(error).__name__}: {error}")
            self._append(
                failure_of_whole_run(FailureKind.CRASH, Stage.END, failure),
                RunEnded(outcome=Outcome.FAILED),
            )
        finally:
            self._over.set()
            self._log.close()

    def _start_telemetry(self) -> None:
        if self._request.telemetry == TELEMETRY_OFF:
            return
        try:
            self._telemetry = TelemetryProcess(self._request.telemetry)
        except OSError as error:
            self._append(TelemetryStarted(no_gpu_reason=telemetry_not_started(message=str(error))))

    def _stop_telemetry(self) -> None:
        if self._telemetry:
            telemetry, self._telemetry = self._telemetry, None
            self._append(*telemetry.stop())

    def _listen(self, streams: Sequence[Stream], exit_fd: int) -> Streams:
        """Listen to a process, to telemetry, and to whoever cancels."""
        telemetry = [self._telemetry.stream] if self._telemetry else []
        return Streams([*streams, *telemetry], exit_fd, self._cancelling.fd)
