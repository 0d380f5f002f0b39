"""A run as a face sees it: a source, and the state that its events make."""

from __future__ import annotations

from contextlib import suppress

from gpulab.protocol.events import AnyEvent, RunEnded, RunStarted, VariantFailed
from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import FailureKind
from gpulab.report.build import build_report
from gpulab.report.report import RunReport
from gpulab.report.state import RunState
from gpulab.session import history
from gpulab.session.source import Live, Source


class Run:
    """`required_speedup` is what every comparison must reach."""

    def __init__(self, source: Source, required_speedup: float | None = None) -> None:
        self.source = source
        self.state = RunState()
        self._required_speedup = required_speedup
        self._report: RunReport | None = None
        self._understood = True
        self._lives = isinstance(source, Live)

    def poll(self) -> list[AnyEvent]:
        """Take in what came since the last call; returns it."""
        events = self.source.take()
        for event in events:
            if self._understood or isinstance(event, RunEnded):
                try:
                    self.state.fold(event)
                except Exception as error:
                    self._give_up(error)
        self._report = None
        if self.ended and self._lives:
            self._lives = False
            self._keep()
        return events

    @property
    def ended(self) -> bool:
        """Whether the last event is in the state."""
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
        """The run has failed, not the face: events that pass every check and make no sense together were forged."""
        self._understood = False
        before, self.state = self.state, RunState()
        if before.request is not None:
            self.state.fold(RunStarted(t=before.started_t, request=before.request, at="", host=""))
        cause = finding("events_make_no_sense", message=f"{type(error).__name__}: {error}")
        kind = FailureKind.ERROR
        self.state.fold(VariantFailed(t=before.t, variant=None, kind=kind, stage=before.stage, cause=cause))
        self.state.outcome = before.outcome
