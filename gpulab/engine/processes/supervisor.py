"""The supervisor: the worker's parent, which outlives it on either side.

It forks the worker before anything heavy is imported, adopts whatever the worker leaves behind
(PR_SET_CHILD_SUBREAPER), ends everything when the session says so or dies, and has the last word on
the event pipe. A thread in the worker could not: a long operation holds the interpreter, and
PR_SET_PDEATHSIG does not reach the worker's own children.
"""

from __future__ import annotations

import faulthandler
import os
import select
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from gpulab.core.events import WorkerExited
from gpulab.core.jobs import CEILINGS_KNOWN, TimedJob, WorkerJob
from gpulab.core.limits import MESSAGE_LENGTH
from gpulab.core.statuses import Stage
from gpulab.core.wire import job_message, read_job
from gpulab.engine.processes.channel import Channel, WorkerPosition
from gpulab.proc.fork import become_subreaper, fork
from gpulab.proc.pipes import to_high_number
from gpulab.proc.tree import ForkGuard, kill_group, kill_orphans, serve_and_exit

Receive = Callable[[], WorkerJob]
"""Waits for the job; the process ends where there will be none."""
Server = Callable[[Channel, Receive, ForkGuard], None]
"""Serves a job in the forked worker; returns when its last event has left."""


def supervise(channel: Channel, commands: int, serve: Server) -> NoReturn:
    """Run one worker to its end. `commands`: a file descriptor with a job, then CEILINGS_KNOWN or a
    byte that cancels.

    The worker is forked before there is a job: it may import torch until then.
    """
    become_subreaper()
    position = channel.position
    trace = os.memfd_create("trace")
    given, give = os.pipe2(os.O_CLOEXEC)
    pid = fork()
    if pid == 0:
        os.close(give)
        forks = _become_worker(channel, commands, trace)
        position.move(Stage.LOAD)
        serve_and_exit(lambda: serve(channel, lambda: _received(given, channel), forks))
    os.close(given)
    if not _has_job_to_read(commands, pid):  # so that nobody takes a worker that is gone
        os._exit(1)
    job = read_job(commands)
    if job is None:
        kill_group(pid, signal.SIGKILL)
        kill_orphans()
        os._exit(1)
    channel.name_variants(job)
    with suppress(BrokenPipeError):  # its end is told by and by
        os.write(give, job_message(job))
    os.close(give)
    status = _watch(pid, commands, position)
    channel.become_supervisors()
    orphans = kill_orphans()
    if isinstance(job, TimedJob) and job.folder:
        shutil.rmtree(job.folder, ignore_errors=True)  # the session may be gone
    if len(channel.buffer):
        channel.emit(channel.buffer.take())
    code = os.waitstatus_to_exitcode(status)
    channel.emit(
        WorkerExited(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            stage=position.stage,
            variant=position.variant,
            trace=os.pread(trace, MESSAGE_LENGTH, 0).decode(errors="replace"),
            orphans=orphans,
        )
    )
    channel.flush()
    os._exit(0)


def _become_worker(channel: Channel, commands: int, trace: int) -> ForkGuard:
    os.setpgid(0, 0)
    with suppress(OSError):
        # Out of memory must take the worker, never the face.
        Path("/proc/self/oom_score_adj").write_text("1000")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, commands)
    os.close(nothing)
    trace_fd = to_high_number(trace)
    faulthandler.enable(file=trace_fd)
    faulthandler.register(signal.SIGUSR1, file=trace_fd)
    # a crash must not take what was printed
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    channel.take_turn()
    return ForkGuard(channel.forked)


def _received(given: int, channel: Channel) -> WorkerJob:
    job = read_job(given)
    if job is None:
        os._exit(1)
    os.close(given)
    channel.name_variants(job)
    return job


def _has_job_to_read(commands: int, pid: int) -> bool:
    """Wait until there is one, or the session is gone; False where the worker ends before."""
    exit_fd = os.pidfd_open(pid)
    readable = select.select([commands, exit_fd], [], [])[0]
    os.close(exit_fd)
    return commands in readable


def _watch(pid: int, commands: int, position: WorkerPosition) -> int:
    """Wait for the worker's end, ending it when told to; returns its wait status."""
    exit_fd = os.pidfd_open(pid)
    while exit_fd not in select.select([exit_fd, commands], [], [])[0]:
        command = os.read(commands, 1)
        if command == CEILINGS_KNOWN:
            position.set_ceilings_known()
            continue
        if command:
            _stop(pid, exit_fd, position)
        kill_group(pid, signal.SIGKILL)
        break
    return os.waitpid(pid, 0)[1]


def _stop(pid: int, exit_fd: int, position: WorkerPosition) -> None:
    """TERM and a second of grace; before it, faulthandler's stack, which comes even out of a long
    operation.
    """
    with suppress(ProcessLookupError):
        os.kill(position.pid or pid, signal.SIGUSR1)
    if not select.select([exit_fd], [], [], 0.2)[0]:
        kill_group(pid, signal.SIGTERM)
        select.select([exit_fd], [], [], 1.0)
