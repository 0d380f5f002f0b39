"""The warden: the worker's parent, which outlives it on either side.

It forks the worker before anything heavy is imported, adopts whatever the worker leaves behind
(PR_SET_CHILD_SUBREAPER), ends everything when the session says so or dies, and has the last word on the
event pipe. A thread in the worker could not: a long operation holds the interpreter, and
PR_SET_PDEATHSIG does not reach the worker's own children.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from gpulab.model.events import STAGES, WorkerExited
from gpulab.model.request import KNOWN, RunRequest
from gpulab.model.scenario import CONTROL
from gpulab.worker.channel import Channel
from gpulab.worker.ledger import Ledger

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_GRACE_S = 1.0
_TRACEBACK_S = 0.2
_SWEEP_S = 5.0
_MOST_TRACE = 65536


class Where:
    """Stage and variant the worker is at, in memory it shares with the warden: readable after any death."""

    def __init__(self, variants: tuple[str, ...]) -> None:
        self._names = variants
        self._cell = mmap.mmap(-1, 3)
        self.at("start")

    def at(self, stage: str, variant: str | None = None) -> None:
        self._cell[0] = STAGES.index(stage)
        self._cell[1] = 255 if variant is None else self._names.index(variant)

    def forked(self) -> None:
        self._cell = mmap.mmap(-1, 3)

    @property
    def known(self) -> bool:
        """Whether the session knows the ceilings of the device from an earlier run."""
        return bool(self._cell[2])

    def know(self) -> None:
        self._cell[2] = 1

    @property
    def stage(self) -> str:
        return STAGES[self._cell[0]]

    @property
    def variant(self) -> str | None:
        return None if self._cell[1] == 255 else self._names[self._cell[1]]


def supervise(channel: Channel, request: RunRequest, commands: int) -> None:
    """Run one worker to its end; never returns. `commands`: KNOWN, or a byte that cancels; its end, the session's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    names = (*(variant.name for variant in request.variants), CONTROL)
    where, ledger = Where(names), Ledger(names)
    trace = os.memfd_create("trace")
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_worker(channel, where, ledger, commands, trace, parent)
        where.at("load")
        from gpulab.worker.serve import serve  # torch: here, so that the warden stays small

        serve(channel, request, ledger, where)
        sys.stdout.flush()
        os._exit(0)
    status = _watch(pid, commands, where)
    orphans = _sweep()
    if len(ledger):
        channel.emit(ledger.take())
    code = os.waitstatus_to_exitcode(status)
    channel.emit(
        WorkerExited(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            stage=where.stage,
            variant=where.variant,
            trace=os.pread(trace, _MOST_TRACE, 0).decode(errors="replace"),
            orphans=orphans,
        )
    )
    channel.flush()
    os._exit(0)


def _become_worker(channel: Channel, where: Where, ledger: Ledger, commands: int, trace: int, warden: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(1)
    os.setpgid(0, 0)
    with suppress(OSError):
        # Out of memory must take the worker, never the face.
        Path("/proc/self/oom_score_adj").write_text("1000")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, commands)
    os.close(nothing)
    kept = os.dup2(trace, 401, inheritable=False)
    os.close(trace)
    faulthandler.enable(file=kept)
    faulthandler.register(signal.SIGUSR1, file=kept)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a crash must not take what was printed
    channel.adopt()
    # A fork holds the pipe open for as long as it lives, and writes to memory that is shared with the warden.
    os.register_at_fork(after_in_child=channel.forked)
    os.register_at_fork(after_in_child=where.forked)
    os.register_at_fork(after_in_child=ledger.forked)


def _watch(pid: int, commands: int, where: Where) -> int:
    """Wait for the worker's end, ending it when told to; returns its wait status."""
    exit_fd = os.pidfd_open(pid)
    while exit_fd not in select.select([exit_fd, commands], [], [])[0]:
        told = os.read(commands, 1)
        if told == KNOWN:
            where.know()
            continue
        if told:
            _stop(pid, exit_fd)
        _kill_group(pid, signal.SIGKILL)
        break
    return os.waitpid(pid, 0)[1]


def _stop(pid: int, exit_fd: int) -> None:
    """TERM and a second of grace; before it, faulthandler's stack, which comes even out of a long operation."""
    os.kill(pid, signal.SIGUSR1)
    if not select.select([exit_fd], [], [], _TRACEBACK_S)[0]:
        _kill_group(pid, signal.SIGTERM)
        select.select([exit_fd], [], [], _GRACE_S)


def _kill_group(pid: int, which: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, which)
    with suppress(ProcessLookupError):
        os.kill(pid, which)


def _sweep() -> int:
    """Kill every process the worker left, in whatever group or session; returns how many there were."""
    killed: set[int] = set()
    give_up = time.monotonic() + _SWEEP_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(killed)
        if time.monotonic() > give_up:  # one that even KILL does not end: it waits in the kernel
            return len(killed)
        import psutil

        for child in psutil.Process().children(recursive=True):
            killed.add(child.pid)
            with suppress(psutil.Error):
                child.kill()
        time.sleep(0.005)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        print(f"gpulab: prctl({option}) failed: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
