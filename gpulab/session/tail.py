"""A run file that grows, as a source of its events: for whoever watches a run of another process.

It only reads, so that a run costs the same however many watch it. The lock that its writer holds
says whether that still lives; it says nothing across hosts, where file systems may not carry it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from time import monotonic, time

from gpulab.core.events import Event, RunEnded, RunStarted
from gpulab.core.failures import run_file_cut, runner_died
from gpulab.core.files import is_held, open_regular
from gpulab.core.findings import Finding
from gpulab.core.host import host_name
from gpulab.core.run_file import LONGEST, Lines, RunFileError

_MOST_BYTES = 1 << 24
"""Of one look: a face goes on drawing while it catches up with a long run."""
_QUIET_S = 1.0
"""Without a new byte, until the lock is asked for; telemetry comes at 10 Hz."""
_SILENT_S = 5.0


class Following(StrEnum):
    """The state of a run that is followed."""

    WAITING = "waiting"
    """There is no file yet, or none that can be read."""
    UNDER_WAY = "under way"
    SILENT = "silent"
    """Nothing has come for some seconds."""
    ENDED = "ended"
    DIED = "died"
    """Its process ended without an end in the file."""
    LOST = "lost"
    """The file cannot be read on."""


class TailSource:
    """Follows the run file at `path`, which may not be there yet. What was read stays, whatever
    becomes of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = Lines(path)
        self._fd: int | None = None
        self._read = 0
        self._partial = b""
        self._problem = ""
        self._deleted = False
        self._over: Following | None = None
        self._closing: list[Finding] = []
        self._started: RunStarted | None = None
        self._last_t = 0.0
        self._behind: float | None = None
        """From the clock of the events to this host's."""
        self._grew_at = monotonic()
        self._asked_at = 0.0
        self._alive: bool | None = None
        """Whether its writer lives, as far as the lock tells."""

    def __del__(self) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        return self._over is not None

    @property
    def findings(self) -> Sequence[Finding]:
        return [*self._lines.findings, *self._closing]

    @property
    def standing(self) -> Following:
        if self._over is not None:
            return self._over
        if self._started is None:
            return Following.WAITING
        return Following.SILENT if self.silent_s >= _SILENT_S else Following.UNDER_WAY

    @property
    def silent_s(self) -> float:
        return monotonic() - self._grew_at

    @property
    def _when(self) -> str:
        """At which time of this place the last event came."""
        if self._started is None:
            return ""
        try:
            at = datetime.fromisoformat(self._started.at)
            at = (at + timedelta(seconds=self._last_t - self._started.t)).astimezone()
        except (ValueError, OverflowError):
            return ""
        today = at.date() == datetime.now().astimezone().date()
        return f" at {at:{'%H:%M:%S' if today else '%H:%M on %Y-%m-%d'}}"

    @property
    def words(self) -> str:
        """Describe the state of the followed run, beside its events."""
        match self.standing:
            case Following.WAITING:
                return self._problem or f"waiting for a run in {self.path}"
            case Following.SILENT if self._alive:
                return f"no event for {self.silent_s:.0f} s; its process lives"
            case Following.SILENT:
                return f"no event for {self.silent_s:.0f} s; whether its process lives is unknown"
            case Following.DIED:
                return f"the run's process died{self._when}: what it measured stays"
            case Following.ENDED:
                return f"watched; it ended{self._when}"
            case Following.LOST:
                return self._problem
            case Following.UNDER_WAY if self._deleted:
                return "its run file was deleted: what comes is kept nowhere"
            case _:
                return "watched"

    def now(self) -> float:
        """The present on the clock of the events, which is another host's where that writes."""
        if self.ended or self._behind is None:
            return self._last_t
        return monotonic() - self._behind

    def take(self) -> list[Event]:
        """The events since the last call; of a file that is long by now the first of them. One
        system call where there is nothing new.
        """
        if self.ended:
            return []
        try:
            if self._fd is None:
                self._open()
            died = self._has_died()  # asked before: what comes between is read below
            data = self._more()
            events = self._events(data)
        except FileNotFoundError:
            self._problem = ""
            return []
        except RunFileError as error:
            return self._lose(str(error))
        except OSError as error:
            reason = f"{self.path}: {error.strerror or error}"
            if self._started is not None:
                return self._lose(reason)
            self._problem = reason
            return []
        if died and not data:
            self._end(Following.DIED, runner_died())
        return events

    def close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _open(self) -> None:
        with open_regular(self.path) as file:
            self._fd = os.dup(file.fileno())
        age_s = time() - os.fstat(self._fd).st_mtime
        self._grew_at = monotonic() - max(0.0, age_s)

    def _more(self) -> bytes:
        assert self._fd is not None
        status = os.fstat(self._fd)
        self._deleted = not status.st_nlink
        if status.st_size < self._read:
            raise RunFileError(f"{self.path} was cut short while it was followed")
        if status.st_size == self._read:
            return b""
        data = os.read(self._fd, _MOST_BYTES)
        self._read += len(data)
        self._grew_at, self._alive = monotonic(), None
        return data

    def _events(self, data: bytes) -> list[Event]:
        *whole, partial = (self._partial + data).split(b"\n")
        self._partial = partial[:LONGEST]
        events = []
        for line in whole:
            event = self._lines.take(line[:LONGEST])
            if event is None:
                continue
            events.append(event)
            if isinstance(event, RunStarted) and self._started is None:
                self._started = event
            if isinstance(event, RunEnded):
                self._last_t = event.t
                self._end(Following.ENDED)
                return events
        if events:
            self._last_t = events[-1].t
            behind = monotonic() - self._last_t
            self._behind = behind if self._behind is None else min(self._behind, behind)
        return events

    def _has_died(self) -> bool:
        """Return whether the writer has died. Without its lock a writer on this host has; one on
        another host may hold it where this one does not see it.
        """
        now = monotonic()
        if self._fd is None or not self._lines.count:
            return False
        if now - max(self._grew_at, self._asked_at) < _QUIET_S:
            return False
        self._asked_at = now
        held = is_held(self._fd)
        here = self._started is None or self._started.host == host_name()
        self._alive = held if held or here else None
        return held is False and here

    def _lose(self, problem: str) -> list[Event]:
        self._problem = problem
        self._end(Following.LOST, run_file_cut(message=problem))
        return []

    def _end(self, how: Following, *findings: Finding) -> None:
        self._over = how
        self._closing += findings
        self.close()
