"""One run: its worker processes and its telemetry process, merged into one ordered log of events.

It works in a thread of its own; a face reads it as a source (`gpulab.session.run`).
"""

from __future__ import annotations

import os
import select
import socket
import tempfile
import threading
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from gpulab.core.events import (
    DEVICE_LOST,
    Event,
    FindingMade,
    RunEnded,
    RunInvalid,
    RunStarted,
    Stopped,
    TelemetryStarted,
    WorkerReady,
)
from gpulab.core.failures import timeout, worker_not_run
from gpulab.core.findings import Finding
from gpulab.core.jobs import (
    CANCEL,
    CEILINGS_KNOWN,
    TELEMETRY_OFF,
    AnyJob,
    Calibrate,
    Follow,
    RunRequest,
)
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import FailureKind, Outcome, Stage
from gpulab.features.goodput.findings import profiling_ended
from gpulab.features.telemetry.findings import telemetry_not_started
from gpulab.features.telemetry.process import TelemetryProcess
from gpulab.session.ceilings import CeilingCache
from gpulab.session.deadline import Deadline
from gpulab.session.history import History
from gpulab.session.streams import CapturedOutput, EventLog
from gpulab.session.transcript import WorkerTranscript, failure_of, failure_of_whole_run
from gpulab.session.worker_process import WORKER, WorkerProcess

_MOST_READS = 64
"""Of what is left in a pipe once the supervisor has ended: more than it holds. Somebody may still
be writing.
"""
_LAST_WORD_S = 10.0
"""How long a supervisor that was told to stop may take."""


class Session:
    """Runs one request, as a source of its events: `start`, then `take` until it has `ended`;
    `cancel` at any time.
    """

    findings: Sequence[Finding] = ()

    def __init__(
        self, request: RunRequest, run_file: RunFile, command: Sequence[str] = WORKER
    ) -> None:
        assert not isinstance(request.job, Follow)
        self._request, self._job, self._command = request, request.job, command
        self._log = EventLog(run_file)
        self._ceilings = CeilingCache(request)
        self._history = History(request)
        self._worker: WorkerProcess | None = None
        self._telemetry: TelemetryProcess | None = None
        self._transcript = WorkerTranscript(self._job)
        """Of the worker that measures: how it ended is how the run ended."""
        self._stopped: Outcome | None = None
        """By the user or the timeout; None where nobody stopped it."""
        self._error: Exception | None = None
        self._deadline = Deadline(request.timeout_s)
        self._overtime: Finding | None = None
        """Why it was too late."""
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # They live as long as anybody may cancel: a number that was given back may be another file
        # by then.
        weakref.finalize(self, _close, self._wake_r, self._wake_w).atexit = False
        self._over = threading.Event()
        """Whether the last event is there to be taken."""
        self._taken = False
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def ended(self) -> bool:
        """Whether everything there will ever be has been taken."""
        return self._taken

    def start(self) -> None:
        self._thread.start()

    def take(self) -> list[Event]:
        """All events since the last call, in order."""
        over = self._over.is_set()  # asked before: what comes between is for the next call
        events = self._log.take()
        self._taken = over
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
        """Stop the worker and all it started. What was measured stays; the end arrives as an event.

        For signal handlers too: it waits for nothing.
        """
        with suppress(BlockingIOError):  # a pipe that is full says the same
            os.write(self._wake_w, CANCEL)

    def _run(self) -> None:
        try:
            self._append(
                RunStarted(
                    request=self._request,
                    at=datetime.now(UTC).isoformat(),
                    host=socket.gethostname(),
                )
            )
            self._history.read()
            self._measure()
            self._append(*self._last_events())
        except Exception as error:  # of the lab's own: the run has an end all the same
            failure = worker_not_run(message=f"{type(error).__name__}: {error}")
            self._append(
                failure_of_whole_run(FailureKind.CRASH, Stage.END, failure),
                RunEnded(outcome=Outcome.FAILED),
            )
        finally:
            self._over.set()
            self._log.close()

    def _measure(self) -> None:
        output = CapturedOutput()
        try:
            self._telemetry = self._start_telemetry()
            with ExitStack() as stack:
                self._work(self._whole_job(stack), self._transcript, output)
        except Exception as error:
            self._error = error
        if self._telemetry:
            telemetry, self._telemetry = self._telemetry, None
            self._append(*telemetry.stop())
        self._append(*output.end())

    def _whole_job(self, stack: ExitStack) -> AnyJob:
        """The job with what earlier runs chose, its profile, and a folder for what goes with the
        run.
        """
        job = self._job
        if isinstance(job, Calibrate):
            return job
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="gpulab-", ignore_cleanup_errors=True)
        )
        return replace(
            job, choices=self._history.choices, profile=self._request.profile, folder=folder
        )

    def _start_telemetry(self) -> TelemetryProcess | None:
        if self._request.telemetry == TELEMETRY_OFF:
            return None
        try:
            return TelemetryProcess(self._request.telemetry)
        except OSError as error:
            self._append(TelemetryStarted(no_gpu_reason=telemetry_not_started(message=str(error))))
            return None

    def _work(
        self, job: AnyJob, transcript: WorkerTranscript, output: CapturedOutput | None
    ) -> None:
        with WorkerProcess(job, transcript, output, self._command) as worker:
            self._worker = worker
            self._deadline.worker_started()
            self._follow(worker)

    def _follow(self, worker: WorkerProcess) -> None:
        """Read every stream until the supervisor has ended and the worker's are empty."""
        streams = {stream.fd: stream for stream in worker.streams}
        if self._telemetry:
            streams[self._telemetry.stream.fd] = self._telemetry.stream
        poll = select.poll()
        for fd in (*streams, worker.exit_fd, self._wake_r):
            poll.register(fd, select.POLLIN)
        last_word_by: float | None = None
        while True:
            until = min((t for t in (self._deadline.at, last_word_by) if t), default=None)
            ready = {
                fd
                for fd, _ in poll.poll(
                    None if until is None else max(0.0, until - monotonic()) * 1000
                )
            }
            for fd in ready & streams.keys():
                if not self._take_from(streams[fd].take()):
                    poll.unregister(fd)
            if worker.exit_fd in ready:
                worker.kill_orphans()  # they may hold the pipes, and write to them without end
                for stream in worker.streams:
                    for _ in range(_MOST_READS):
                        if not self._take_from(stream.take()):
                            break
                return
            if (
                stop := self._stop_asked(cancelled=self._wake_r in ready)
            ) and self._stopped is None:
                self._stopped, last_word_by = stop, monotonic() + _LAST_WORD_S
                worker.tell(CANCEL)
            if last_word_by and monotonic() >= last_word_by:
                return

    def _stop_asked(self, *, cancelled: bool) -> Outcome | None:
        stop = Outcome.CANCELLED if cancelled and self._cancel_asked() else None
        if overtime := self._deadline.passed():
            stop, self._overtime = Outcome.TIMEOUT, overtime
        return stop

    def _cancel_asked(self) -> bool:
        with suppress(BlockingIOError):
            return bool(os.read(self._wake_r, 64))
        return False

    def _take_from(self, batch: tuple[list[Event], bool]) -> bool:
        events, more = batch
        self._append(*events)
        return more

    def _append(self, *events: Event) -> None:
        self._log.append(*events)
        for event in events:
            self._deadline.see(event)
            if isinstance(event, WorkerReady) and self._telemetry:
                self._telemetry.target(event)
            if (earlier := self._history.see(event)) is not None:
                self._append(earlier)
            if (ceilings := self._ceilings.see(event)) is not None:
                self._append(ceilings)
            if isinstance(event, Stopped) and self._worker and self._ceilings.is_enough:
                self._worker.tell(CEILINGS_KNOWN)

    def _last_events(self) -> list[Event]:
        """How the run ended, from the supervisor's report, or from the lack of one."""
        transcript = self._transcript
        if self._stopped is None and self._cancel_asked():  # while nobody waited for that
            self._stopped = Outcome.CANCELLED
        events: list[Event] = [FindingMade(finding=finding) for finding in transcript.findings]
        history = self._history.findings
        events += [FindingMade(finding=finding, explains=True) for finding in history]
        events += [RunInvalid(reason=problem) for problem in transcript.problems]
        # a timeout that came too late changes nothing
        if transcript.complete and self._stopped != Outcome.CANCELLED:
            return [*events, RunEnded(outcome=Outcome.DONE)]
        # everything has been measured
        if self._stopped == Outcome.TIMEOUT and transcript.stage == Stage.PROFILE:
            cause = self._overtime or timeout(timeout_s=self._request.timeout_s)
            ended = profiling_ended.because(cause, transcript.variant)
            return [*events, FindingMade(finding=ended), RunEnded(outcome=Outcome.DONE)]
        reported = (
            transcript.exited and transcript.exited.code == DEVICE_LOST and not transcript.problems
        )
        if not reported:  # by the worker itself
            events.append(
                failure_of(self._request, transcript, self._stopped, self._error, self._overtime)
            )
        return [*events, RunEnded(outcome=self._stopped or Outcome.FAILED)]


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
