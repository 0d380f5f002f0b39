"""CPU time of a process's other threads, and of the processes that it started."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import torch

_TASKS = Path("/proc/self/task")
_OF_PROCESS = 2
_OF_THREAD = 6
"""Which clock of the kernel: see clock_getcpuclockid(3)."""
_COMPILER = b"torch/_inductor/compile_worker"
_LOOK_EVERY_S = 3e-4
_POOL_ELEMENTS = 1 << 18
"""Enough for an operation to be shared among threads."""

_pool: set[int] = set()


def start_pool(threads: int) -> None:
    """Start torch's own thread pool before a scenario does anything: its threads spin for a while
    after each operation, and are not counted. Nor are those of a device's driver, which run by now.
    """
    _pool.clear()
    if threads > 1:
        torch.ones(_POOL_ELEMENTS).sin_().sum()
    _pool.update(_threads())


class CpuOfOthers:
    """CPU seconds of all other threads, and of the processes that this one started, from now on;
    without torch's pool and its compiler.

    The clock of the whole process lags by up to a kernel tick for threads that are running.
    """

    def __init__(self) -> None:
        self._before = self._latest = _seconds()

    def watch(self, seconds: float) -> float:
        """CPU seconds that they have spent by the end of `seconds`; of one that ends meanwhile,
        until just before.
        """
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            time.sleep(min(left, _LOOK_EVERY_S))
            self._latest = {**self._latest, **_seconds()}
        return sum(
            max(0.0, spent - self._before.get(number, 0.0))
            for number, spent in self._latest.items()
        )


def _seconds() -> dict[int, float]:
    """CPU seconds by the number of a thread or process."""
    own = threading.get_native_id()
    tids = _threads() - _pool - {own}
    if torch.get_num_threads() > 1:  # a thread that calls torch then has a pool of its own
        known = {thread.native_id for thread in threading.enumerate()}
        name = _name(own)
        # nobody gave a name to those of a pool
        tids = {tid for tid in tids if tid in known or _name(tid) != name}
    processes = {pid: _cpu_s(pid, _OF_PROCESS) for pid in _children(os.getpid())}
    return {tid: _cpu_s(tid, _OF_THREAD) for tid in tids} | processes


def _name(tid: int) -> str | None:
    try:
        return (_TASKS / str(tid) / "comm").read_text()
    except OSError:  # it has ended
        return None


def _threads() -> set[int]:
    return {int(entry.name) for entry in _TASKS.iterdir()}


def _cpu_s(number: int, which: int) -> float:
    try:
        return time.clock_gettime((~number << 3) | which)
    except OSError:  # it has ended
        return 0.0


def _children(pid: int) -> set[int]:
    """Processes below one, without those of torch's compiler."""
    below: set[int] = set()
    for task in _tasks_of(pid):
        try:
            numbers = (task / "children").read_text().split()
        except OSError:  # it has ended, or the kernel does not say
            continue
        for child in map(int, numbers):
            if not _is_compiler(child):
                below |= {child, *_children(child)}
    return below


def _tasks_of(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _is_compiler(pid: int) -> bool:
    try:
        return _COMPILER in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
