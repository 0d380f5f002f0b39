"""Where the events of a run come from: a session, a run file, or a run file that still grows. Alike to every face."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import Protocol

from gpulab.protocol.events import AnyEvent, RunEnded
from gpulab.protocol.finding import Finding
from gpulab.protocol.run_file import RunFileReader, read_run_file
from gpulab.session.session import Session


class Source(Protocol):
    """The events of one run in their order."""

    @property
    def path(self) -> Path:
        """The run file."""

    @property
    def ended(self) -> bool:
        """Whether everything there will ever be has been taken."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What of the run could not be read."""

    def take(self) -> list[AnyEvent]:
        """The events since the last call."""

    def now(self) -> float:
        """The present on the clock of the events, in seconds."""


class Live:
    """A run of this process. Only what lives can be cancelled, waited for, or told to pause its telemetry."""

    findings: Sequence[Finding] = ()

    def __init__(self, session: Session) -> None:
        """`session` is not started yet."""
        self._session = session
        self._taken = False
        session.start()

    @property
    def path(self) -> Path:
        return self._session.path

    @property
    def ended(self) -> bool:
        return self._taken

    def take(self) -> list[AnyEvent]:
        ended = self._session.ended  # asked before: what comes between is for the next call
        events = self._session.take()
        self._taken = ended
        return events

    def now(self) -> float:
        return monotonic()

    def cancel(self) -> None:
        """Stop it; what was measured stays, and the end arrives as an event."""
        self._session.cancel()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, at most so long; returns whether it has come. The last events are still to be taken."""
        return self._session.wait(timeout_s)

    def switch_telemetry(self, *, on: bool) -> None:
        """Pause the sampler, or let it go on."""
        self._session.switch_telemetry(on=on)


class File:
    """A run file, whole or cut. RunFileError where it is none; OSError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        recording = read_run_file(path)
        self.path = path
        self.findings: Sequence[Finding] = recording.findings
        self._events = recording.events
        self._end = self._events[-1].t if self._events else 0.0

    @property
    def ended(self) -> bool:
        return not self._events

    def take(self) -> list[AnyEvent]:
        events, self._events = self._events, []
        return events

    def now(self) -> float:
        return self._end


class Follow:
    """A run file while another process writes it: what has been written so far, and on from there.

    It ends with the run's last event, which a writer that was killed never writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = RunFileReader(path)
        self._last: AnyEvent | None = None
        self._delay_s = inf
        """The shortest time by which an event was behind this machine's clock."""

    @property
    def findings(self) -> Sequence[Finding]:
        return self._reader.findings

    @property
    def ended(self) -> bool:
        return isinstance(self._last, RunEnded)

    def take(self) -> list[AnyEvent]:
        events = self._reader.take()
        if events:
            self._last = events[-1]
            self._delay_s = min(self._delay_s, monotonic() - self._last.t)
        return events

    def now(self) -> float:
        """The clock of another machine, or of an earlier time, is this one's less the shortest delay."""
        if self._last is None:
            return 0.0
        return self._last.t if self.ended else monotonic() - self._delay_s

    def close(self) -> None:
        self._reader.close()
