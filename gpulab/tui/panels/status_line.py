"""The first line of the screen: what goes on, or what a key did."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from gpulab.draw.blocks import Text
from gpulab.features import present
from gpulab.tui import status
from gpulab.tui.panels.pane import TextPane
from gpulab.tui.panels.tabs import changing
from gpulab.tui.runs import Runs, words_of

if TYPE_CHECKING:
    from gpulab.features.sweeps.runs import SweepRuns
    from gpulab.report.report import RunReport


class StatusLine(TextPane):
    """A message stands until the next key that says nothing."""

    def __init__(
        self, runs: Runs | None, idle: Callable[[int], Text], beside: Callable[[], str]
    ) -> None:
        """`idle`: what stands there while nothing runs, or without `runs`, in so many cells;
        `beside`: what else there is to say of a run.
        """
        super().__init__(id="status")
        self._runs, self._idle, self._beside = runs, idle, beside
        self._message, self._style = "", ""
        self._drawn: Hashable = None
        """What it was last drawn of, and how wide."""
        self._progress = ""
        self._progress_of: Hashable = None
        """What the words about the run were last made of."""

    def say(self, text: str = "", style: str = "") -> None:
        """Show a message; without one, what goes on."""
        self._message, self._style = text, style

    def update_line(self, *, frozen: bool, in_sight: bool) -> None:
        """`in_sight`: the panels of what runs say how far it is."""
        line = Text(f" {self._message}", self._style)
        if not self._message:
            line = self._activity(frozen=frozen, in_sight=in_sight)
        if (line, self.size.width) != self._drawn:
            fits = self.size.height == 1 and line.cell_len <= self.size.width
            self._drawn = line, self.size.width
            self.show(line, as_high=fits)

    def _activity(self, *, frozen: bool, in_sight: bool) -> Text:
        runs = self._runs
        if runs is None or (run := runs.current) is None:
            return self._idle(self.size.width)
        if runs.stopping:
            return status.line(f"{runs.running}: stopping")
        # The report of a run is most of what a tick costs: it is made when the panels need it too.
        progress_of = changing(run), in_sight
        if progress_of != self._progress_of:
            self._progress_of = progress_of
            self._progress = _progress(run.report, in_sight=in_sight)
        parts = words_of(run.source), self._beside(), self._progress
        text = " · ".join(filter(None, parts))
        sweep = runs.sweeps.get(runs.running or "")
        if sweep is not None:
            text = f"{_point(sweep)} · {text}"
        return status.line(f"paused (space resumes) · {text}" if frozen else text)


def _point(sweep: SweepRuns) -> str:
    """Return how far a sweep is."""
    done, values = len(sweep.reports), sweep.values
    if done >= len(values):
        return f"final of {sweep.parameter}"
    return f"{sweep.parameter}={values[done]}, {done + 1} of {len(values)}"


def _progress(report: RunReport, *, in_sight: bool) -> str:
    progress = present("live.progress")
    if progress is None:
        return report.scenario
    words: str = (progress.subject if in_sight and report.scenario else progress.headline)(report)
    return words
