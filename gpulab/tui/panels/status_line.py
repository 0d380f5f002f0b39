"""The first line of the screen: what goes on, or what the last key did."""

from __future__ import annotations

from gpulab.tui import status
from gpulab.tui.panels.pane import Pane
from gpulab.tui.runs import Runs


class StatusLine(Pane, can_focus=False):
    """A message stands until the next key that says nothing."""

    def __init__(self, runs: Runs, device: str) -> None:
        super().__init__(id="status")
        self._runs, self._device = runs, device
        self._message, self._style = "", ""

    def say(self, text: str = "", style: str = "") -> None:
        """Show a message; without one, what goes on."""
        self._message, self._style = text, style

    def update_line(self, *, frozen: bool, in_sight: bool) -> None:
        """`in_sight`: the panels of what runs say how far it is."""
        message = self._message or f"gpulab · {self._activity(frozen=frozen, in_sight=in_sight)}"
        self.show_line(message, self._style)

    def _activity(self, *, frozen: bool, in_sight: bool) -> str:
        run = self._runs.current
        if run is None:
            return status.ready(self._device)
        if self._runs.stopping:
            return status.stopping(self._runs.running or "")
        from gpulab.features.live.progress import headline, subject

        text = subject(run.report) if in_sight and run.report.scenario else headline(run.report)
        sweep = self._runs.sweeps.get(self._runs.running or "")
        if sweep is not None:
            text = f"{status.sweeping(sweep.parameter, sweep.values, len(sweep.reports))} · {text}"
        return status.frozen(text) if frozen else text
