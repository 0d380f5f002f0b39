"""The forks that the lab makes of its own process, told apart from those that a scenario makes.

A fork of a scenario holds the lab's pipe open for as long as it lives, and writes to memory that is shared with the
supervisor: it has to let go of both. A fork of the lab goes on with them.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

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


def die_as(status: int | None) -> NoReturn:
    """End as a process below ended: the supervisor, which sees the first one alone, tells the session of it."""
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
