"""What a run printed."""

from __future__ import annotations

from collections.abc import Hashable

from rich.console import RenderableType

from gpulab.session.run import Run
from gpulab.tui.log import log
from gpulab.tui.panels.selection import Selection
from gpulab.tui.status import before_a_run


def content(selection: Selection) -> RenderableType:
    if selection.run is None:
        return before_a_run(selection.row)
    return log(selection.run.report)


def changing(run: Run) -> Hashable:
    """A thousand lines are not laid out again for nothing: that would take a quarter of a core."""
    return run.source.path, run.ended, run.state.log.count, len(run.state.failures)
