"""One worker with its supervisor, as the session sees it: given a job, read through two pipes, ended with it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from gpulab.protocol.events import AnyEvent
from gpulab.protocol.frames import job_message
from gpulab.protocol.jobs import AnyJob
from gpulab.session.captured_output import CapturedOutput
from gpulab.session.started_worker import READY, WORKER, StartedWorker
from gpulab.session.streams import Lines, Stream, read_available
from gpulab.session.worker_environment import worker_environment
from gpulab.session.worker_transcript import WorkerTranscript


class WorkerProcess:
    """A context manager: leaving it leaves no process behind. `output` takes what the scenario prints, or nobody."""

    def __init__(
        self,
        job: AnyJob,
        transcript: WorkerTranscript,
        output: CapturedOutput | None,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._job, self._transcript, self._output, self._command = job, transcript, output, command
        self._lines = Lines()

    def __enter__(self) -> WorkerProcess:
        ready = READY.take(self._job) if self._command is WORKER else None
        started = self._started = ready or StartedWorker(worker_environment(self._job), self._command)
        started.take_strays = self._add_strays
        self.streams = [
            Stream(started.events_fd, lambda: self._take_events(started.events_fd)),
            Stream(started.output_fd, lambda: self._take_output(started.output_fd)),
        ]
        """Both end with the worker; what is in them then is still to be read."""
        self.exit_fd, self.tell, self.end_strays = started.exit_fd, started.tell, started.end_strays
        self.tell(job_message(self._job, self._transcript.secret))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._started.close()

    def _add_strays(self, count: int) -> None:
        self._transcript.strays += count

    def _take_events(self, fd: int) -> tuple[list[AnyEvent], bool]:
        data = read_available(fd) or b""
        taken = (self._transcript.take(line) for line in self._lines.take(data) if line)
        return [event for event in taken if event is not None], bool(data)

    def _take_output(self, fd: int) -> tuple[list[AnyEvent], bool]:
        data = read_available(fd)
        return [*self._output.take(data)] if data and self._output else [], bool(data)
