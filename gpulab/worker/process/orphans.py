"""Processes that a worker started and left: adopted by the process above it, and ended."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress

import psutil

from gpulab.worker.process.forking import prctl

_PR_SET_CHILD_SUBREAPER = 36
_SWEEP_S = 5.0


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_orphans(spare: Collection[int] = ()) -> int:
    """Kill every process below this one, in whatever group or session, but for some children; how many there were."""
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
