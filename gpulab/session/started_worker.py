"""A worker's process that waits for its job; and one that an app keeps ready, with torch imported."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from select import PIPE_BUF

from gpulab.protocol.jobs import AnyJob, TimedJob
from gpulab.session.strays import Strays
from gpulab.session.streams import pipe
from gpulab.session.worker_environment import usual_environment, worker_environment

WORKER = (sys.executable, "-P", "-m", "gpulab.worker")


class StartedWorker:
    """A process, two pipes to read, and its stdin. `close` leaves no process behind."""

    def __init__(self, environment: Mapping[str, str], command: Sequence[str], *, ready: bool = False) -> None:
        self._resources = ExitStack()
        self.take_strays: Callable[[int], None] = lambda count: None
        """Is told how many processes outlived the supervisor as well."""
        with self._resources, ExitStack() as worker_ends:
            self._strays = self._resources.enter_context(Strays())
            self._resources.callback(self.end_strays)
            self.events_fd, events_w = pipe(self._resources, worker_ends)
            self.output_fd, output_w = pipe(self._resources, worker_ends)
            self._process = subprocess.Popen(
                [*command, str(events_w), *(["--ready"] if ready else [])],
                stdin=subprocess.PIPE,
                stdout=output_w,
                stderr=output_w,
                pass_fds=[events_w],
                bufsize=0,  # what a write leaves in a buffer would be written again when the pipe is closed
                start_new_session=True,
                env={**environment, **self._strays.environment},
            )
            self._strays.supervisor = self._process.pid
            self._resources.enter_context(self._process)
            self._resources.callback(self._kill)
            self.exit_fd = os.pidfd_open(self._process.pid)
            """Readable once the supervisor, which outlives its worker, has ended."""
            self._resources.callback(os.close, self.exit_fd)
            self._resources = self._resources.pop_all()

    @property
    def is_there(self) -> bool:
        return self._process.poll() is None

    def tell(self, message: bytes) -> None:
        """A word to the supervisor, which may be gone, or hang before it reads."""
        commands = self._process.stdin
        assert commands is not None
        with suppress(OSError):  # so that it holds nobody
            fcntl.fcntl(commands, fcntl.F_SETPIPE_SZ, min(len(message) + PIPE_BUF, 1 << 20))
        with suppress(BrokenPipeError, ValueError):
            while message:
                message = message[commands.write(message) or 0 :]

    def end_strays(self) -> None:
        """End what the supervisor can no longer end; it is gone."""
        self.take_strays(self._strays.end())

    def close(self) -> None:
        self._resources.close()

    def _kill(self) -> None:
        """The supervisor ends by itself; this is for the one that was killed, or does not answer."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class ReadyWorker:
    """One worker that has imported torch, for the next run of an app: `prepare` while nothing is measured."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: tuple[StartedWorker, dict[str, str]] | None = None

    def prepare(self, threads: int) -> None:
        """Have one for jobs with so many threads, in whose environment the scenario changes nothing."""
        environment = usual_environment(threads)
        with self._lock:
            if self._started is None:
                self._started = StartedWorker(environment, WORKER, ready=True), environment

    def take(self, job: AnyJob) -> StartedWorker | None:
        """The worker for a job; None where there is none, or not for this one."""
        with self._lock:
            kept, self._started = self._started, None
        if kept is None:
            return None
        started, environment = kept
        fits = isinstance(job, TimedJob) and job.seed is None and not job.starts_matter
        if fits and started.is_there and worker_environment(job) == environment:
            return started
        started.close()
        return None

    def close(self) -> None:
        with self._lock:
            kept, self._started = self._started, None
        if kept is not None:
            kept[0].close()


READY = ReadyWorker()
"""Of this process; empty but in an app."""
