"""The runs of the screen: at most one at a time, and of each scenario its last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.protocol.finding import Finding
from gpulab.session.settings import Settings, UsageError
from gpulab.views.findings import sentence, with_reason
from gpulab.views.listing import best_comparison

if TYPE_CHECKING:
    from gpulab.session.run import Run
    from gpulab.session.source import Live, Source

Starter = Callable[[Entry, Settings], "Source | Finding"]
"""Starts a run and gives its source, or the reason why it cannot run here. UsageError."""


class Runs:
    """`running` is the name of the scenario that runs; `stopping`: it was told to stop."""

    def __init__(self, settings: Settings, starter: Starter) -> None:
        self._settings, self._starter = settings, starter
        self._runs: dict[str, Run] = {}
        self.running: str | None = None
        self.stopping = False
        self.waiting: list[str] = []
        """Scenarios that are to run after this one, in their order."""
        self.guesses: dict[str, list[float]] = {}
        """How many times as fast somebody said that a scenario's best variant would be."""

    def of(self, name: str | None) -> Run | None:
        """The last run of a scenario."""
        return self._runs.get(name or "")

    @property
    def current(self) -> Run | None:
        """What runs."""
        return self.of(self.running)

    def start(self, entry: Entry) -> str | None:
        """Start a run; returns the problem where that cannot be."""
        try:
            source = self._starter(entry, self._settings)
        except UsageError as error:
            return with_reason(str(error), error.reason)
        if isinstance(source, Finding):
            return sentence(source)
        from gpulab.session.run import Run

        self.running, self.stopping = entry.name, False
        self._runs[entry.name] = Run(source)
        return None

    def poll(self) -> str | None:
        """Take in what came; the name of the scenario whose run has ended with it."""
        name, run = self.running, self.current
        if name is None or run is None:
            return None
        run.poll()
        if not run.ended:
            return None
        self.running = None
        self._keep_guess(name, run)
        return name

    def _keep_guess(self, name: str, run: Run) -> None:
        if (guesses := self.guesses.get(name)) and (best := best_comparison(run.report)) is not None:
            from gpulab.session.guesses import keep

            keep(name, best.variant, guesses, (best.speedup, best.low, best.high))

    def stop(self) -> bool:
        """Tell what runs to stop, and start nothing after it; whether there is an end to wait for."""
        self.waiting = []
        if source := self._live():
            self.stopping = True
            source.cancel()
        return source is not None

    def cancel(self) -> None:
        """The same from a handler of a signal, which must not wait for the loop: that may wait for the terminal."""
        run = self.current
        if (cancel := getattr(run and run.source, "cancel", None)) is not None:
            cancel()

    def end(self) -> None:
        """Stop what runs, and wait until nothing of it is left."""
        if source := self._live():
            source.cancel()
            source.wait()

    def _live(self) -> Live | None:
        """What runs, where it can be stopped."""
        run = self.current
        if run is None:
            return None
        from gpulab.session.source import Live

        return run.source if isinstance(run.source, Live) else None
