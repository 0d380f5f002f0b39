"""Processes of a worker that outlived its supervisor: they become children of this process, and are
ended from here.

A supervisor ends whatever its worker leaves behind. A scenario may kill it first, and its processes
may have gone away into sessions of their own. So this process adopts them for as long as a worker
runs, and knows them by what they inherited. What else is a child of this process, in a user's
notebook for example, is never touched.
"""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING

from gpulab.proc.fork import become_subreaper, is_subreaper

if TYPE_CHECKING:
    import psutil

_MARK = "GPULAB_WORKER"


def in_worker() -> bool:
    """Return whether this process is a worker, or was started by one."""
    return _MARK in os.environ


class Orphans:
    """While it is entered, this process adopts. `environment` marks what a worker starts."""

    def __init__(self, name: str = _MARK) -> None:
        """`name`: of the variable that marks them."""
        self.environment = {name: secrets.token_hex(16)}
        self.supervisor: int | None = None
        """The process that leads the worker's session."""
        self._seen: set[int] = set()

    def __enter__(self) -> Orphans:
        _adoption.begin()
        return self

    def __exit__(self, *error: object) -> None:
        _adoption.end()

    def end(self) -> int:
        """Kill what is left, once the supervisor is gone; how many processes that were."""
        if not self._alive():
            return 0
        # the worker itself dies with its supervisor, and was not left behind
        dead_by = monotonic() + 1.0
        while self._alive() and monotonic() < dead_by:
            sleep(0.01)
        killed: set[int] = set()
        deadline = monotonic() + 5.0
        while (alive := self._alive()) and monotonic() < deadline:
            for process in alive:
                killed.add(process.pid)
                with suppress(ProcessLookupError):
                    process.kill()
            sleep(0.005)
        return len(killed)

    def count(self) -> int:
        return len(self._alive())

    def signal(self, number: int) -> None:
        for process in self._alive():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)

    def _alive(self) -> list[psutil.Process]:
        """Descendants of this process that are the worker's; those that are dead are buried."""
        import psutil  # here: most commands of the lab start no worker

        alive = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, OSError):
                if process.pid not in self._seen and not self._is_of_the_worker(process):
                    continue
                self._seen.add(process.pid)
                if process.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(process.pid, os.WNOHANG)
                else:
                    alive.append(process)
        return alive

    def _is_of_the_worker(self, process: psutil.Process) -> bool:
        if process.pid == self.supervisor:
            return False
        in_its_session = os.getsid(process.pid) == self.supervisor
        return in_its_session or self.environment.items() <= process.environ().items()


class _Adoption:
    """This process's adoption of orphans: as long as any run needs it, then as before."""

    def __init__(self) -> None:
        self._lock, self._count, self._before = threading.Lock(), 0, False

    def begin(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._before = is_subreaper()
                become_subreaper()

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                become_subreaper(becomes=self._before)


_adoption = _Adoption()
