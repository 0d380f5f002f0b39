"""How processes end, and what their forks let go of."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NoReturn

import psutil

from gpulab.proc.fork import fork


class ForkGuard:
    """Makes the lab's own forks. In every other one, a scenario's, `let_go` is called.

    It would hold the event pipe open for as long as it lives, and write to the shared memory.
    """

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go
        self._own = False
        os.register_at_fork(after_in_child=self._in_child)

    def fork(self) -> int:
        """As `os.fork`. The child dies with this process."""
        self._own = True
        try:
            return fork()
        finally:
            self._own = False

    def _in_child(self) -> None:
        if not self._own:
            self._let_go()


def exit_like(status: int | None) -> NoReturn:
    """End as a child ended: the supervisor sees only the worker's first process."""
    code = os.waitstatus_to_exitcode(status or 0)
    if code >= 0:
        os._exit(code)
    faulthandler.disable()  # the child has written its stack
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


def kill_orphans(spare: Collection[int] = ()) -> int:
    """Kill every process below this one, in whatever group or session, except the children `spare`
    and theirs. Returns how many.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + 5.0
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(killed)
        orphans: list[psutil.Process] = []
        for child in psutil.Process().children():
            if child.pid not in spare:
                orphans += [child, *_descendants(child)]
        # a process that survives SIGKILL is waiting in the kernel
        if not orphans or time.monotonic() > deadline:
            return len(killed)
        for process in orphans:
            killed.add(process.pid)
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.005)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)  # type: ignore[no-any-return]
    except psutil.Error:  # it has ended
        return []


def serve_and_exit(serve: Callable[[], None]) -> NoReturn:
    """Serve and exit in any case: what the scenario left in the process, such as a thread, must not
    keep it alive.
    """
    code = 1
    try:
        serve()
        code = 0
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        with suppress(BaseException):  # it may be an object of the scenario's by now
            sys.stdout.flush()
        os._exit(code)


def kill_group(pid: int, which: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, which)
    with suppress(ProcessLookupError):
        os.kill(pid, which)
