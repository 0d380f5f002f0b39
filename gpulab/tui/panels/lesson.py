"""The lesson of a scenario, to be read before it runs."""

from __future__ import annotations

from gpulab.catalog.view import lesson
from gpulab.draw.blocks import Block
from gpulab.tui.panels.tabs import Selection


def content(selection: Selection) -> Block:
    run, settings = selection.run, selection.settings
    chosen: dict[str, str] = {}
    if settings:
        chosen |= settings.chosen
        if settings.device:
            chosen["device"] = settings.device
        if settings.time_s:
            chosen["time"] = f"{settings.time_s:g}s"
    waits = selection.prediction is not None and run is not None and not run.ended
    return lesson(
        selection.row,
        chosen=chosen,
        earlier=selection.earlier,
        hides_claim=waits,
        answers=selection.answers,
        expected=selection.expected,
    )
