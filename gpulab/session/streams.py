"""What a scenario prints, and the one ordered log of events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulab.core.events import Event, FindingMade, Log
from gpulab.core.failures import run_file_cut
from gpulab.core.limits import KEPT_LINES, TEXT_LENGTH
from gpulab.core.run_file import RunFile
from gpulab.core.text import plain

_LINES_OF_EVENT = 100
"""All of them, in bytes that are no text, would be a line that no reader of the run file takes."""


class CapturedOutput:
    """Takes bytes as they come, gives `Log` events: the first lines at once, the last ones at the
    end.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._head = 0
        self._tail: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._held_back = 0

    def take(self, data: bytes) -> list[Log]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > TEXT_LENGTH:
            lines.append(self._rest)
            self._rest = b""
        room = KEPT_LINES - self._head
        first, later = lines[:room], lines[room:]
        self._head += len(first)
        self._held_back += len(later)
        self._tail.extend(later)
        return [Log(lines=[_text(line) for line in first])] if first else []

    def end(self) -> list[Log]:
        """Return the lines held back, behind the count of those left out."""
        logs = self.take(b"\n") if self._rest else []
        if self._tail:
            skipped = self._held_back - len(self._tail)
            lines = [_text(line) for line in self._tail]
            for start in range(0, len(lines), _LINES_OF_EVENT):
                logs.append(
                    Log(
                        lines=lines[start : start + _LINES_OF_EVENT],
                        skipped=0 if start else skipped,
                    )
                )
        return logs


def _text(line: bytes) -> str:
    text = line[:TEXT_LENGTH].decode(errors="replace").rstrip("\r")
    return plain(text.rpartition("\r")[2])  # a progress bar that redraws its line: its last state


class EventLog:
    """The run file only grows; the face takes each event once. A disk that is full ends the file,
    never the run.
    """

    def __init__(self, file: RunFile) -> None:
        self._file = file
        self._recording = True
        self._events: deque[Event] = deque()

    @property
    def path(self) -> Path:
        return self._file.path

    def append(self, *events: Event) -> None:
        if self._recording and events:
            try:
                self._file.append(events)
            except OSError as error:
                self._recording = False
                self._events.append(FindingMade(finding=run_file_cut(message=str(error))))
        self._events.extend(events)

    def take(self) -> list[Event]:
        """Everything since the last call. Safe beside an `append` of another thread."""
        events = []
        with suppress(IndexError):
            while True:
                events.append(self._events.popleft())
        return events

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Stream:
    """`take` gives the events that can be read from `fd` now, and whether more may come."""

    fd: int
    take: Callable[[], tuple[list[Event], bool]]
