"""What a scenario prints, and what is read from a process."""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulab.core.events import Event, Log
from gpulab.core.limits import KEPT_LINES, TEXT_LENGTH
from gpulab.core.text import plain
from gpulab.proc.pipes import read_available

_LINES_OF_EVENT = 100
"""All of them, in bytes that are no text, would be a line that no reader of the run file takes."""


class CapturedOutput:
    """Takes bytes as they come, gives `Log` events: first lines at once, last ones at the end."""

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

    def stream(self, fd: int) -> Stream:
        """It as it comes out of a pipe."""

        def take() -> tuple[list[Event], bool]:
            data = read_available(fd)
            return [*self.take(data or b"")], data != b""

        return Stream(fd, take)

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


@dataclass(frozen=True)
class Stream:
    """`take` gives the events that can be read from `fd` now, and whether more may come."""

    fd: int
    take: Callable[[], tuple[list[Event], bool]]

    def rest(self) -> list[Event]:
        """Take what is left, once its process has ended: more than a pipe holds where somebody is
        still writing, but not without end.
        """
        events: list[Event] = []
        for _ in range(64):
            taken, more = self.take()
            events += taken
            if not more:
                break
        return events


class Streams:
    """What is read from several processes at a time; `others` wake whoever waits, too."""

    def __init__(self, streams: Sequence[Stream], *others: int) -> None:
        self._streams = {stream.fd: stream for stream in streams}
        self._poll = select.poll()
        for fd in (*self._streams, *others):
            self._poll.register(fd, select.POLLIN)

    def wait(self, timeout_s: float | None) -> tuple[set[int], list[Event]]:
        """Wait until something can be read: of what, and the events that were."""
        timeout_ms = None if timeout_s is None else max(0.0, timeout_s) * 1000
        ready = {fd for fd, _ in self._poll.poll(timeout_ms)}
        events: list[Event] = []
        for fd in ready & self._streams.keys():
            taken, more = self._streams[fd].take()
            events += taken
            if not more:
                self._poll.unregister(fd)
        return ready, events
