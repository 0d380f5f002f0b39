"""The forks that the lab makes of its own process, and the processes that a worker started and
left.

A fork of a scenario holds the lab's pipe open for as long as it lives, and writes to memory that is
shared with the supervisor: it has to let go of both. A fork of the lab goes on with them.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import NoReturn, Protocol

import psutil

_PR_SET_PDEATHSIG = 1


class Shared(Protocol):
    """What a process shares with its supervisor."""

    def forked(self) -> None:
        """Let go of it: this is a child that a scenario forked."""


class Forks:
    """Makes the lab's own forks; every other one lets go of what is `shared`."""

    def __init__(self, shared: Sequence[Shared]) -> None:
        self._shared = shared
        self._own = False
        os.register_at_fork(after_in_child=self._in_child)

    def fork(self) -> int:
        """As `os.fork`. The child dies with this process."""
        self._own, parent = True, os.getpid()
        try:
            pid = os.fork()
        finally:
            self._own = False
        if pid == 0:
            die_with_parent(parent)
        return pid

    def _in_child(self) -> None:
        if not self._own:
            for shared in self._shared:
                shared.forked()


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which forked it, ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def exit_like(status: int | None) -> NoReturn:
    """End as a process below ended: the supervisor, which sees the first one alone, tells the
    session of it.
    """
    code = os.waitstatus_to_exitcode(status or 0)
    if code >= 0:
        os._exit(code)
    faulthandler.disable()  # the stack that counts has been written
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        print(f"gpulab: prctl({option}) failed: {os.strerror(ctypes.get_errno())}", file=sys.stderr)


_PR_SET_CHILD_SUBREAPER = 36
_SWEEP_S = 5.0


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_orphans(spare: Collection[int] = ()) -> int:
    """Kill every process below this one, in whatever group or session, but for some children; how
    many there were.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + _SWEEP_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(killed)
        below = [
            process
            for child in psutil.Process().children()
            if child.pid not in spare
            for process in (child, *_below(child))
        ]
        # One that even KILL does not end waits in the kernel.
        if not below or time.monotonic() > deadline:
            return len(killed)
        for process in below:
            killed.add(process.pid)
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.005)


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)  # type: ignore[no-any-return]
    except psutil.Error:  # it has ended
        return []
