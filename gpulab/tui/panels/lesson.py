"""The lesson of a scenario, to be read before it runs."""

from __future__ import annotations

from collections.abc import Hashable

from rich.console import RenderableType

from gpulab.catalog.view import lesson
from gpulab.session.run import Run
from gpulab.tui.panels.tabs import Selection


def content(selection: Selection) -> RenderableType:
    run, settings = selection.run, selection.settings
    chosen = dict(settings.chosen) if settings else {}
    chosen |= {"device": settings.device} if settings and settings.device else {}
    chosen |= {"time": f"{settings.time_s:g}s"} if settings and settings.time_s else {}
    waits = selection.prediction is not None and run is not None and not run.ended
    return lesson(selection.row, chosen=chosen, hides_claim=waits)


def changing(run: Run) -> Hashable:
    """Whether a guess still waits for its answer."""
    return run.ended
