"""The lesson of a scenario, to be read before it runs."""

from __future__ import annotations

from collections.abc import Hashable

from rich.console import RenderableType

from gpulab.session.run import Run
from gpulab.tui.panels.selection import Selection
from gpulab.views.lesson import lesson


def content(selection: Selection) -> RenderableType:
    return lesson(selection.row, selection.glyphs)


def changing(run: Run) -> Hashable:
    """Nothing of a run is in it."""
    return None
