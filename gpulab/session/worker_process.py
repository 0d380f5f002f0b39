"""One worker with its supervisor, as the session sees it: started, given a job, read through two
pipes, ended.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from select import PIPE_BUF

from gpulab.core.events import Event
from gpulab.core.jobs import ScenarioFile, TimedJob, WorkerJob, subject_of
from gpulab.core.wire import job_message
from gpulab.proc.orphans import Orphans
from gpulab.proc.pipes import Lines, pipe, read_available
from gpulab.proc.spawn import PIPE, spawn
from gpulab.proc.tree import kill_group
from gpulab.session.streams import CapturedOutput, Stream
from gpulab.session.transcript import WorkerTranscript


def usual_environment(threads: int) -> dict[str, str]:
    """Ours, with the allocator and the number of threads pinned."""
    pinned = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    return {
        **os.environ,
        # placement decides what a fresh allocation costs: with the default thresholds one and the
        # same chain of operations ran 2x faster in some processes than in others
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
        "MALLOC_TOP_PAD_": str(256 << 20),
        **pinned,
        # a process that compiled waits 6 seconds at its end for inductor's helper processes;
        # threads do as well
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "KINETO_LOG_LEVEL": "99",
    }


def worker_environment(job: WorkerJob) -> dict[str, str]:
    """The usual one, and what the scenario asks for. `{folder}` is the run's, empty at first."""
    variables = usual_environment(job.threads)
    subject = subject_of(job)
    if not isinstance(subject, ScenarioFile):
        return variables
    folder = job.folder if isinstance(job, TimedJob) else None
    for name, value in subject.env.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value.replace("{folder}", folder or "")
    return variables


WORKER = (sys.executable, "-P", "-m", "gpulab.engine")


class WorkerProcess:
    """A process, two pipes to read, and its stdin. `close` leaves no process behind."""

    def __init__(
        self, environment: Mapping[str, str], command: Sequence[str], *, ready: bool = False
    ) -> None:
        self._resources = ExitStack()
        self.streams: list[Stream] = []
        """Both end with the worker; what is in them then is still to be read."""
        self.orphans = 0
        """Processes that outlived the supervisor as well."""
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

    def work_on(self, job: WorkerJob, transcript: WorkerTranscript, output: CapturedOutput) -> None:
        """Give it its job. `output` takes what the scenario prints."""
        lines = Lines()

        def events() -> tuple[list[Event], bool]:
            data = read_available(self.events_fd) or b""
            taken = (transcript.take(line) for line in lines.take(data) if line)
            return [event for event in taken if event is not None], bool(data)

        self.streams = [Stream(self.events_fd, events), output.stream(self.output_fd)]
        self.tell(job_message(job))

    def exit_code(self) -> int:
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
        self.orphans += self._orphans.end()

    def close(self) -> None:
        self._resources.close()

    def _kill(self) -> None:
        """The supervisor ends by itself, but for one that was killed, or does not answer."""
        with suppress(PermissionError):
            kill_group(self._process.pid, signal.SIGKILL)


class ReadyWorker:
    """One worker that has imported torch, for the next run: `prepare` while nothing is measured."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: tuple[WorkerProcess, dict[str, str]] | None = None

    def prepare(self, threads: int) -> None:
        """Have one for jobs with so many threads, in whose environment the scenario changes
        nothing.
        """
        environment = usual_environment(threads)
        with self._lock:
            if self._started is None:
                self._started = WorkerProcess(environment, WORKER, ready=True), environment

    def take(self, job: WorkerJob) -> WorkerProcess | None:
        """The worker for a job; None where there is none, or not for this one."""
        kept = self._pop()
        if kept is None:
            return None
        started, environment = kept
        fits = isinstance(job, TimedJob) and job.seed is None and not job.starts_matter
        if fits and started.is_there and worker_environment(job) == environment:
            return started
        started.close()
        return None

    def close(self) -> None:
        if kept := self._pop():
            kept[0].close()

    def _pop(self) -> tuple[WorkerProcess, dict[str, str]] | None:
        with self._lock:
            kept, self._started = self._started, None
        return kept


READY = ReadyWorker()
"""Of this process, where a run comes next, or an app is open."""


def worker_for(job: WorkerJob, command: Sequence[str]) -> WorkerProcess:
    """The one that is ready, where it is one for this job; else a new one."""
    ready = READY.take(job) if command is WORKER else None
    return ready or WorkerProcess(worker_environment(job), command)
