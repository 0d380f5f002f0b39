"""The events of one run in their order: each goes to the run file at once, and waits for the face to take it."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path

from gpulab.protocol.events import AnyEvent, Noticed
from gpulab.protocol.finding import finding
from gpulab.protocol.run_file import RunFile


class EventLog:
    """The run file only grows; the face takes each event once. A disk that is full ends the file, never the run."""

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self._recording = True
        self._events: deque[AnyEvent] = deque()

    @property
    def path(self) -> Path:
        return self._file.path

    def append(self, *events: AnyEvent) -> None:
        if self._recording and events:
            try:
                self._file.append(events)
            except OSError as error:
                self._recording = False
                self._events.append(Noticed(finding=finding("run_file_cut", message=str(error))))
        self._events.extend(events)

    def take(self) -> list[AnyEvent]:
        """Everything since the last call. Safe beside an `append` of another thread."""
        events = []
        with suppress(IndexError):
            while True:
                events.append(self._events.popleft())
        return events

    def close(self) -> None:
        self._file.close()
