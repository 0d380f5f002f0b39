"""The machine and the worker, as the operating system sees them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class _Use:
    """What a process has used since it started."""

    cpu_s: float
    switches: int
    rss: int


class Host:
    """Samples the whole machine and a worker: its process, and those that it forks to measure in."""

    def __init__(self, worker: int) -> None:
        self._worker: psutil.Process | None = None
        self._frequency_at = 0.0
        self._before: tuple[float, dict[int, _Use]] | None = None
        with suppress(psutil.Error):
            self._worker = psutil.Process(worker)
        psutil.cpu_percent()

    def sample(self, now: float) -> dict[str, float]:
        """Percent of a core (of all cores for the machine), bytes, switches per second, MHz; what is known of it."""
        values = {"machine_cpu": psutil.cpu_percent()}
        if now - self._frequency_at >= 1.0:  # it asks every core of the machine
            self._frequency_at = now
            frequency = psutil.cpu_freq()
            if frequency is not None and frequency.current:
                values["frequency"] = frequency.current
        uses = self._uses()
        if not uses:
            return values
        before, self._before = self._before, (now, uses)
        values["rss"] = float(max(use.rss for use in uses.values()))
        if before is None or now <= before[0]:
            return values
        seconds, nothing = now - before[0], _Use(0.0, 0, 0)
        # Of a process that has ended meanwhile its last part is not known.
        changes = [(use, before[1].get(pid, nothing)) for pid, use in uses.items()]
        values["worker_cpu"] = 100 * sum(use.cpu_s - earlier.cpu_s for use, earlier in changes) / seconds
        values["switches"] = sum(use.switches - earlier.switches for use, earlier in changes) / seconds
        return values

    def _uses(self) -> dict[int, _Use]:
        """By process; empty once the worker is gone."""
        if self._worker is None:
            return {}
        try:
            processes = [self._worker, *self._worker.children(recursive=True)]
        except psutil.Error:
            self._worker = None
            return {}
        return {process.pid: use for process in processes if (use := _use_of(process)) is not None}


def _use_of(process: psutil.Process) -> _Use | None:
    """None of one that has ended, perhaps without having been collected."""
    try:
        with process.oneshot():
            times, rss = process.cpu_times(), process.memory_info().rss
            return _Use(times.user + times.system, process.num_ctx_switches().involuntary, rss) if rss else None
    except psutil.Error:
        return None
