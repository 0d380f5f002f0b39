"""The machine and the worker, as the operating system sees them."""

from __future__ import annotations

import psutil


class Host:
    """Samples the worker's process and the whole machine."""

    def __init__(self, worker: int) -> None:
        self._worker: psutil.Process | None = None
        self._switches: tuple[float, int] | None = None
        self._frequency_at = 0.0
        try:
            self._worker = psutil.Process(worker)
            self._worker.cpu_percent()
        except psutil.Error:
            pass
        psutil.cpu_percent()

    def sample(self, now: float) -> dict[str, float]:
        """Percent of a core (of all cores for the machine), bytes, switches per second, MHz; what is known of it."""
        values = {"machine_cpu": psutil.cpu_percent()}
        if now - self._frequency_at >= 1.0:  # it asks every core of the machine
            self._frequency_at = now
            frequency = psutil.cpu_freq()
            if frequency is not None and frequency.current:
                values["frequency"] = frequency.current
        if self._worker is None:
            return values
        try:
            with self._worker.oneshot():
                cpu, rss = self._worker.cpu_percent(), float(self._worker.memory_info().rss)
                switches = self._worker.num_ctx_switches().involuntary
        except psutil.Error:
            self._worker = None
            return values
        if not rss:  # it has ended, and waits to be collected
            return values
        values |= {"worker_cpu": cpu, "rss": rss}
        if self._switches is not None and now > self._switches[0]:
            values["switches"] = (switches - self._switches[1]) / (now - self._switches[0])
        self._switches = now, switches
        return values
