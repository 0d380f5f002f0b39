"""A run as a face sees it: a source of events, and the state that they make."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from gpulab.catalog.exercises import handed_out
from gpulab.catalog.todays import with_todays_text
from gpulab.core.events import Event, RunEnded, RunStarted, VariantFailed
from gpulab.core.failures import events_make_no_sense
from gpulab.core.findings import Finding
from gpulab.core.run_file import Lines, RunFileError, event_batches
from gpulab.core.statuses import FailureKind
from gpulab.report.build import build_report, new_state
from gpulab.report.past import PastRun
from gpulab.report.report import RunReport
from gpulab.session import history
from gpulab.session.live import LiveSource
from gpulab.session.store import Store


class Source(Protocol):
    """The events of one run in their order."""

    @property
    def path(self) -> Path:
        """The run file."""

    @property
    def ended(self) -> bool:
        """Return whether everything there will ever be has been taken."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Return findings of what could not be read of the run."""

    def take(self) -> list[Event]:
        """The events since the last call."""

    def now(self) -> float:
        """The present on the clock of the events, in seconds."""


class FileSource:
    """A run file, whole or cut, part after part where it is long. RunFileError where it is none;
    OSError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = Lines(path)
        self._batches = event_batches(path, self._lines)
        self._events = with_todays_text(path, next(self._batches))
        self._end = self._events[-1].t if self._events else 0.0

    @property
    def ended(self) -> bool:
        return not self._events

    @property
    def findings(self) -> Sequence[Finding]:
        return self._lines.findings

    def take(self) -> list[Event]:
        events = self._events
        self._events = next((batch for batch in self._batches if batch), [])
        if self._events:
            self._end = self._events[-1].t
        return events

    def now(self) -> float:
        return self._end


class Run:
    """`required_speedup` is what every comparison must reach."""

    def __init__(self, source: Source, required_speedup: float | None = None) -> None:
        self.source = source
        self.state = new_state()
        self._required_speedup = required_speedup
        self._report: RunReport | None = None
        self._understood = True
        self._lives = isinstance(source, LiveSource)

    def poll(self) -> list[Event]:
        """Take in what came since the last call; returns it, of a long file its last part."""
        events = self._fold(self.source.take())
        while isinstance(self.source, FileSource) and not self.source.ended:
            events = self._fold(self.source.take())
        self._report = None
        if self.ended and self._lives:
            self._lives = False
            self._keep()
        return events

    def _fold(self, events: list[Event]) -> list[Event]:
        for event in events:
            if self._understood or isinstance(event, RunEnded):
                try:
                    self.state.fold(event)
                except Exception as error:
                    self._give_up(error)
        return events

    @property
    def ended(self) -> bool:
        """Return whether the last event is in the state."""
        return self.source.ended

    @property
    def report(self) -> RunReport:
        """As of the last poll; of a run that has ended, final."""
        if self._report is None:
            try:
                self._report = self._built()
            except Exception as error:
                self._give_up(error)
                self._report = self._built()
        return self._report

    def _keep(self) -> None:
        """A run of this process is history for the next."""
        with suppress(Exception):  # which is no part of this one
            history.keep(self.state, self.report)

    def _built(self) -> RunReport:
        return build_report(
            self.state,
            str(self.source.path),
            required_speedup=self._required_speedup,
            live=not self.ended,
            now=self.source.now(),
            findings=self.source.findings,
        )

    def _give_up(self, error: Exception) -> None:
        """The run has failed, not the face, where events that pass every check make no sense
        together.
        """
        self._understood = False
        before, self.state = self.state, new_state()
        if started := before.last(RunStarted):
            self.state.fold(replace(started, at="", host=""))
        cause = events_make_no_sense(message=f"{type(error).__name__}: {error}")
        kind = FailureKind.ERROR
        self.state.fold(
            VariantFailed(t=before.t, variant=None, kind=kind, stage=before.stage, cause=cause)
        )
        if ended := before.last(RunEnded):
            self.state.fold(ended)


def whole_run(path: Path) -> Run:
    """The run of a run file, as far as it came. RunFileError and OSError where there is none."""
    run = Run(FileSource(path))
    run.poll()
    return run


def newest_report(scenario: str) -> RunReport | None:
    """Return the report of a scenario's newest run that measured something at full size; None where
    there is none, or its file is gone.
    """
    for past in _runs():
        if past.scenario == scenario and past.measured and not past.smoke:
            try:
                return whole_run(Path(past.run_file)).report
            except (OSError, RunFileError):
                continue
    return None


def has_attempt(exercise: str) -> bool:
    """Return whether a run judged an answer to it other than the file as it is handed out.
    NoExerciseError.
    """
    untouched = sha256(handed_out(exercise).encode()).hexdigest()
    return any(run.exercise == exercise and run.source_sha256 != untouched for run in _runs())


def _runs() -> list[PastRun]:
    """All runs of this machine, the newest first."""
    with Store() as store:
        return store.runs()
    return []
