"""One run of a worker: its processes and its telemetry process, merged into one ordered log of
events. A face reads it as a source (`gpulab.session.run`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from time import monotonic

from msgspec.structs import replace

from gpulab.core.counted_steps import StepsJob
from gpulab.core.events import (
    DEVICE_LOST,
    Event,
    FindingMade,
    OutOfMemory,
    RunEnded,
    RunInvalid,
    Stopped,
    VariantFailed,
    VariantSkipped,
    WorkerReady,
)
from gpulab.core.failures import timeout
from gpulab.core.findings import Finding
from gpulab.core.jobs import CANCEL, CEILINGS_KNOWN, AnyJob, Calibrate, Follow, RunRequest
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import Outcome, Stage
from gpulab.features import present
from gpulab.features.goodput.findings import profiling_ended
from gpulab.session.ceilings import CeilingCache
from gpulab.session.deadline import Deadline
from gpulab.session.history import History
from gpulab.session.live import LiveSource
from gpulab.session.streams import CapturedOutput
from gpulab.session.temporary import temporary_folder
from gpulab.session.transcript import WorkerTranscript, failure_of
from gpulab.session.worker_process import WORKER, WorkerProcess, worker_for

_SHUTDOWN_TIMEOUT_S = 10.0
"""How long a supervisor that was told to stop may take."""


class Session(LiveSource):
    """Runs one request in a worker."""

    def __init__(
        self, request: RunRequest, run_file: RunFile, command: Sequence[str] = WORKER
    ) -> None:
        super().__init__(request, run_file)
        assert not isinstance(request.job, Follow)
        self._job, self._command = request.job, command
        self._ceilings = CeilingCache(request)
        self._history = History(request)
        self._worker: WorkerProcess | None = None
        self._transcript = WorkerTranscript()
        """Of the worker that measures: how it ended is how the run ended."""
        self._failed: set[str | None] = set()
        """Variants that nothing more is to be known of."""
        self._stopped: Outcome | None = None
        """By the user or the timeout; None where nobody stopped it."""
        self._error: Exception | None = None
        self._deadline = Deadline(request.timeout_s)
        self._overtime: Finding | None = None
        """Why it was too late."""

    def _work(self) -> list[Event]:
        self._history.read()
        self._measure()
        return self._last_events()

    def _measure(self) -> None:
        output = CapturedOutput()
        try:
            self._start_telemetry()
            with ExitStack() as stack:
                job = self._whole_job(stack)
                worker = stack.enter_context(closing(worker_for(job, self._command)))
                self._worker = worker
                worker.work_on(job, self._transcript, output)
                self._deadline.worker_started()
                self._follow(worker)
                # before the supervisor is waited for: until then the system has its worker's CPU
                # time
                self._stop_telemetry()
                self._sample_counters(job)
        except Exception as error:
            self._error = error
        if self._worker is not None:
            self._transcript.orphans += self._worker.orphans
        self._stop_telemetry()
        self._append(*output.end())

    def _sample_counters(self, job: AnyJob) -> None:
        """Once everything is measured, and nothing else reads the counters."""
        sampling = present("counters_in_time.after")
        interval_s = self._request.counters_s
        if not sampling or not interval_s or isinstance(job, Calibrate) or self._stopped:
            return
        if self._transcript.complete:
            names = [info.name for info in job.subject.variants if info.name not in self._failed]
            choices = [*self._history.choices, *self._history.made]
            asked = StepsJob(job=job, variants=names, choices=choices)
            for event in sampling.sample_counters(asked, interval_s, self._cancelling.fd):
                self._append(event)

    def _whole_job(self, stack: ExitStack) -> AnyJob:
        """The job with what earlier runs chose, its profile, and a folder for the run."""
        job = self._job
        if isinstance(job, Calibrate):
            return job
        folder = str(stack.enter_context(temporary_folder()))
        return replace(
            job, choices=self._history.choices, profile=self._request.profile, folder=folder
        )

    def _follow(self, worker: WorkerProcess) -> None:
        """Read every stream until the supervisor has ended and the worker's are empty."""
        streams = self._listen(worker.streams, worker.exit_fd)
        shutdown_by: float | None = None
        while True:
            until = min((t for t in (self._deadline.at, shutdown_by) if t), default=None)
            ready, events = streams.wait(None if until is None else until - monotonic())
            self._append(*events)
            if worker.exit_fd in ready:
                worker.kill_orphans()  # they may hold the pipes, and write to them without end
                for stream in worker.streams:
                    self._append(*stream.rest())
                return
            if (
                stop := self._stop_requested(cancelled=self._cancelling.fd in ready)
            ) and self._stopped is None:
                self._stopped, shutdown_by = stop, monotonic() + _SHUTDOWN_TIMEOUT_S
                worker.tell(CANCEL)
            if shutdown_by and monotonic() >= shutdown_by:
                return

    def _stop_requested(self, *, cancelled: bool) -> Outcome | None:
        stop = Outcome.CANCELLED if cancelled and self._cancelling.has_rung() else None
        if overtime := self._deadline.passed():
            stop, self._overtime = Outcome.TIMEOUT, overtime
        return stop

    def _append(self, *events: Event) -> None:
        self._log.append(*events)
        for event in events:
            self._deadline.on_event(event)
            if isinstance(event, (VariantFailed, VariantSkipped, OutOfMemory)):
                self._failed.add(event.variant)
            if isinstance(event, WorkerReady) and self._telemetry and self._worker:
                self._telemetry.target(event, self._worker.pid)
            if (earlier := self._history.on_event(event)) is not None:
                self._append(earlier)
            if (ceilings := self._ceilings.on_event(event)) is not None:
                self._append(ceilings)
            if isinstance(event, Stopped) and self._worker and self._ceilings.is_enough:
                self._worker.tell(CEILINGS_KNOWN)

    def _last_events(self) -> list[Event]:
        """Return events of how the run ended, by the supervisor's report, or the lack of one."""
        transcript = self._transcript
        if self._stopped is None and self._cancelling.has_rung():  # while nobody waited for that
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
            ended = profiling_ended.caused_by(cause, transcript.variant)
            return [*events, FindingMade(finding=ended), RunEnded(outcome=Outcome.DONE)]
        reported = (
            transcript.exited and transcript.exited.code == DEVICE_LOST and not transcript.problems
        )
        if not reported:  # by the worker itself
            events.append(
                failure_of(self._request, transcript, self._stopped, self._error, self._overtime)
            )
        return [*events, RunEnded(outcome=self._stopped or Outcome.FAILED)]
