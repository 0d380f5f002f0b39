"""One worker with its supervisor, as the session sees it: given a job, read through two pipes, ended with it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from select import PIPE_BUF
from types import TracebackType

from gpulab.protocol.events import AnyEvent
from gpulab.protocol.frames import job_message
from gpulab.protocol.jobs import AnyJob
from gpulab.session.captured_output import CapturedOutput
from gpulab.session.strays import Strays
from gpulab.session.streams import Lines, Stream, pipe, read_available
from gpulab.session.worker_environment import worker_environment
from gpulab.session.worker_transcript import WorkerTranscript

WORKER = (sys.executable, "-P", "-m", "gpulab.worker")


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
        self._resources = ExitStack()
        self._lines = Lines()

    def __enter__(self) -> WorkerProcess:
        with self._resources, ExitStack() as worker_ends:
            self._strays = self._resources.enter_context(Strays())
            self._resources.callback(self.end_strays)
            events_fd, events_w = pipe(self._resources, worker_ends)
            output_fd, output_w = pipe(self._resources, worker_ends)
            self._process = subprocess.Popen(
                [*self._command, str(events_w)],
                stdin=subprocess.PIPE,
                stdout=output_w,
                stderr=output_w,
                pass_fds=[events_w],
                bufsize=0,  # what a write leaves in a buffer would be written again when the pipe is closed
                start_new_session=True,
                env=worker_environment(self._job) | self._strays.environment,
            )
            self._strays.supervisor = self._process.pid
            self._resources.enter_context(self._process)
            self._resources.callback(self._kill)
            self.streams = [
                Stream(events_fd, lambda: self._take_events(events_fd)),
                Stream(output_fd, lambda: self._take_output(output_fd)),
            ]
            """Both end with the worker; what is in them then is still to be read."""
            self.exit_fd = os.pidfd_open(self._process.pid)
            """Readable once the supervisor, which outlives its worker, has ended."""
            self._resources.callback(os.close, self.exit_fd)
            message = job_message(self._job, self._transcript.secret)
            with suppress(OSError):  # so that a supervisor that hangs before it reads holds nobody
                fcntl.fcntl(self._process.stdin or -1, fcntl.F_SETPIPE_SZ, min(len(message) + PIPE_BUF, 1 << 20))
            self.tell(message)
            self._resources = self._resources.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._resources.close()

    def tell(self, command: bytes) -> None:
        """A word to the supervisor, which may be gone."""
        commands = self._process.stdin
        assert commands is not None
        with suppress(BrokenPipeError, ValueError):
            while command:
                command = command[commands.write(command) or 0 :]

    def end_strays(self) -> None:
        """End what the supervisor can no longer end; it is gone."""
        self._transcript.strays += self._strays.end()

    def _take_events(self, fd: int) -> tuple[list[AnyEvent], bool]:
        data = read_available(fd) or b""
        taken = (self._transcript.take(line) for line in self._lines.take(data) if line)
        return [event for event in taken if event is not None], bool(data)

    def _take_output(self, fd: int) -> tuple[list[AnyEvent], bool]:
        data = read_available(fd)
        return [*self._output.take(data)] if data and self._output else [], bool(data)

    def _kill(self) -> None:
        """The supervisor ends by itself; this is for the one that was killed, or does not answer."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
