"""The lines that a scenario printed, bounded: the first and the last ones, and how many were between them."""

from __future__ import annotations

from collections import deque

from gpulab.limits import KEPT_LINES
from gpulab.protocol.events import Log
from gpulab.report.report import LogReport


class LogHistory:
    def __init__(self) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)
        self._skipped = 0
        self.count = 0
        """Lines so far, those left out too."""

    def add(self, event: Log) -> None:
        self.count += event.skipped + len(event.lines)
        self._skipped += event.skipped
        room = KEPT_LINES - len(self._head)
        self._head += event.lines[:room]
        later = event.lines[room:]
        self._skipped += max(0, len(self._tail) + len(later) - KEPT_LINES)
        self._tail.extend(later)

    def report(self) -> LogReport:
        return LogReport(head=list(self._head), skipped=self._skipped, tail=list(self._tail))
