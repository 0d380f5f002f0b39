"""A run as a face sees it: a source, and the state that its events make."""

from __future__ import annotations

from gpulab.protocol.events import AnyEvent
from gpulab.report.build import build_report
from gpulab.report.report import RunReport
from gpulab.report.state import RunState
from gpulab.session.source import Source


class Run:
    """`required_speedup` is what every comparison must reach."""

    def __init__(self, source: Source, required_speedup: float | None = None) -> None:
        self.source = source
        self.state = RunState()
        self._required_speedup = required_speedup
        self._report: RunReport | None = None

    def poll(self) -> list[AnyEvent]:
        """Take in what came since the last call; returns it."""
        events = self.source.take()
        for event in events:
            self.state.fold(event)
        self._report = None
        return events

    @property
    def ended(self) -> bool:
        """Whether the last event is in the state."""
        return self.source.ended

    @property
    def report(self) -> RunReport:
        """As of the last poll; of a run that has ended, final."""
        if self._report is None:
            self._report = build_report(
                self.state,
                str(self.source.path),
                required_speedup=self._required_speedup,
                live=not self.ended,
                now=self.source.now(),
                findings=self.source.findings,
            )
        return self._report
