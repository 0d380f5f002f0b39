"""One worker with its supervisor, as the session sees it: started, given a job, read through two
pipes, ended.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from select import PIPE_BUF

from gpulab.core.events import Event
from gpulab.core.jobs import AnyJob, ScenarioFile, TimedJob, subject_of
from gpulab.core.wire import job_message
from gpulab.proc.orphans import Orphans
from gpulab.proc.pipes import Lines, pipe, read_available
from gpulab.proc.spawn import PIPE, spawn
from gpulab.proc.tree import kill_group
from gpulab.session.streams import CapturedOutput, Stream
from gpulab.session.transcript import WorkerTranscript

# Placement decides what a fresh allocation costs: with the default thresholds one and the same
# chain of operations ran 2x faster in some processes than in others.
_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
# A process that compiled waits 6 seconds at its end for inductor's helper processes; threads do as
# well.
_COMPILER = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}

FOLDER = "{folder}"
"""Stands for a folder of the run in the values of a scenario's variables."""


def usual_environment(threads: int) -> dict[str, str]:
    """Ours, with the allocator and the number of threads pinned."""
    pinned = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    return {**os.environ, **_MALLOC, **pinned, **_COMPILER, "KINETO_LOG_LEVEL": "99"}


def worker_environment(job: AnyJob) -> dict[str, str]:
    """The usual one, and what the scenario asks for."""
    subject = subject_of(job)
    own = _own(job, subject.env) if isinstance(subject, ScenarioFile) else {}
    variables: dict[str, str | None] = {**usual_environment(job.threads), **own}
    return {name: value for name, value in variables.items() if value is not None}


def _own(job: AnyJob, variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the scenario's environment; a folder that it names is the run's, empty at first."""
    folder = job.folder if isinstance(job, TimedJob) else None
    return {
        name: value and value.replace(FOLDER, folder or "") for name, value in variables.items()
    }


WORKER = (sys.executable, "-P", "-m", "gpulab.engine")


class StartedWorker:
    """A process, two pipes to read, and its stdin. `close` leaves no process behind."""

    def __init__(
        self, environment: Mapping[str, str], command: Sequence[str], *, ready: bool = False
    ) -> None:
        self._resources = ExitStack()
        self.take_orphans: Callable[[int], None] = lambda count: None
        """Is told how many processes outlived the supervisor as well."""
        with self._resources, ExitStack() as worker_ends:
            self._orphans = self._resources.enter_context(Orphans())
            self._resources.callback(self.kill_orphans)
            self.events_fd, events_w = pipe(self._resources, worker_ends)
            self.output_fd, output_w = pipe(self._resources, worker_ends)
            self._process = spawn(
                [*command, str(events_w), *(["--ready"] if ready else [])],
                stdin=PIPE,
                stdout=output_w,
                stderr=output_w,
                pass_fds=[events_w],
                start_new_session=True,
                env={**environment, **self._orphans.environment},
            )
            self._orphans.supervisor = self._process.pid
            self._resources.enter_context(self._process)
            self._resources.callback(self._kill)
            self.exit_fd = os.pidfd_open(self._process.pid)
            """Readable once the supervisor, which outlives its worker, has ended."""
            self._resources.callback(os.close, self.exit_fd)
            self._resources = self._resources.pop_all()

    @property
    def pid(self) -> int:
        """Return the process id of the supervisor."""
        return self._process.pid

    @property
    def is_there(self) -> bool:
        return self._process.poll() is None

    def exit_code(self) -> int:
        """Wait until the supervisor has ended; return its exit code."""
        return self._process.wait()

    def tell(self, message: bytes) -> None:
        """A word to the supervisor, which may be gone, or hang before it reads."""
        commands = self._process.stdin
        assert commands is not None
        with suppress(OSError):  # so that it holds nobody
            fcntl.fcntl(commands, fcntl.F_SETPIPE_SZ, min(len(message) + PIPE_BUF, 1 << 20))
        with suppress(BrokenPipeError, ValueError):
            while message:
                message = message[commands.write(message) or 0 :]

    def kill_orphans(self) -> None:
        """End what the supervisor can no longer end; it is gone."""
        self.take_orphans(self._orphans.end())

    def close(self) -> None:
        self._resources.close()

    def _kill(self) -> None:
        """The supervisor ends by itself; this is for the one that was killed, or does not
        answer.
        """
        with suppress(PermissionError):
            kill_group(self._process.pid, signal.SIGKILL)


class ReadyWorker:
    """One worker that has imported torch, for the next run of an app: `prepare` while nothing is
    measured.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: tuple[StartedWorker, dict[str, str]] | None = None

    def prepare(self, threads: int) -> None:
        """Have one for jobs with so many threads, in whose environment the scenario changes
        nothing.
        """
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


class WorkerProcess:
    """A context manager: leaving it leaves no process behind. `output` takes what the scenario
    prints, or nobody.
    """

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
        started = self._started = ready or StartedWorker(
            worker_environment(self._job), self._command
        )
        started.take_orphans = self._add_orphans
        self.streams = [
            Stream(started.events_fd, lambda: self._take_events(started.events_fd)),
            Stream(started.output_fd, lambda: self._take_output(started.output_fd)),
        ]
        """Both end with the worker; what is in them then is still to be read."""
        self.pid = started.pid
        self.exit_fd = started.exit_fd
        self.tell = started.tell
        self.kill_orphans = started.kill_orphans
        self.tell(job_message(self._job, self._transcript.secret))
        return self

    def __exit__(self, *error: object) -> None:
        self._started.close()

    def _add_orphans(self, count: int) -> None:
        self._transcript.orphans += count

    def _take_events(self, fd: int) -> tuple[list[Event], bool]:
        data = read_available(fd) or b""
        taken = (self._transcript.take(line) for line in self._lines.take(data) if line)
        return [event for event in taken if event is not None], bool(data)

    def _take_output(self, fd: int) -> tuple[list[Event], bool]:
        data = read_available(fd)
        return [*self._output.take(data)] if data and self._output else [], bool(data)
