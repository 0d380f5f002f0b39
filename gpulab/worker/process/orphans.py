"""Processes that a worker started and left: adopted by the process above it, and ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from gpulab.worker.process.forking import prctl

_PR_SET_CHILD_SUBREAPER = 36
_SWEEP_S = 5.0


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_orphans() -> int:
    """Kill every process below this one, in whatever group or session; returns how many there were."""
    killed: set[int] = set()
    deadline = time.monotonic() + _SWEEP_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return len(killed)
        if time.monotonic() > deadline:  # one that even KILL does not end: it waits in the kernel
            return len(killed)
        import psutil

        for child in psutil.Process().children(recursive=True):
            killed.add(child.pid)
            with suppress(psutil.Error):
                child.kill()
        time.sleep(0.005)
