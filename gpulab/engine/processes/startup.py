"""Seconds that a process spends before its first build, by part, each measured where it happens.

A fork of a process that has imported torch inherits that one's parts, and adds its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, perf_counter

INTERPRETER = "interpreter"
"""From the start of the process to its first line of Python."""
IMPORTS = "imports"
"""torch."""
DEVICE = "device"
"""The device and its context."""
FILE = "file"
"""The scenario's file, with whatever that imports."""


def _since_start_s() -> float:
    """Seconds since this process started, to a hundredth; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        # the 22nd field of /proc/PID/stat: ticks since boot
        started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, clock_gettime(CLOCK_BOOTTIME) - started_s)


_seconds: dict[str, float] = {INTERPRETER: _since_start_s()}


@contextmanager
def timed(part: str) -> Iterator[None]:
    """Measure a part of the startup, once it has ended without an error; the last time counts."""
    started = perf_counter()
    yield
    _seconds[part] = perf_counter() - started


def startup_s() -> dict[str, float]:
    """Seconds of the parts so far."""
    return dict(_seconds)
