"""A run of a scenario: its progress while it goes on, its result once it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import needed, present
from gpulab.report.live import live_run
from gpulab.session.run import Run
from gpulab.show.parts import Shown, Target, on_screen
from gpulab.tui.panels.tabs import Selection
from gpulab.tui.status import before_a_run, in_the_middle

if TYPE_CHECKING:
    from gpulab.features.predictions.report import Prediction


def content(selection: Selection) -> Block:
    run = selection.run
    if run is None:
        return in_the_middle(before_a_run(selection.row, selection.age), selection.size)
    width, height = selection.size
    sweep = selection.sweep
    if run.ended and not selection.zoomed and sweep is not None and sweep.reports:
        drawn: Block = needed("sweeps.view").sweep_view(sweep.sweep, sweep.reports)
        return drawn
    prediction = selection.prediction
    middle = prediction.middle if prediction else None
    live = live_run(run.report, run.state, middle)
    panels = present("live.screen")
    if panels is not None and (selection.zoomed or not run.ended):
        drawn = panels.live_view(
            live, width=width, height=height, chosen=selection.panel, zoomed=selection.zoomed
        )
        return drawn
    shown = Shown(
        run.report,
        Target.SCREEN,
        width=width,
        together=selection.together,
        live=live,
        predicted=answer_of(run, prediction),
    )
    drawn = on_screen(shown)
    return Group(Text(selection.age, "bold"), "", drawn) if selection.age else drawn


def answer_of(run: Run, prediction: Prediction | None) -> list[Block]:
    """Return what a run that has ended says to a prediction; empty without one."""
    if prediction is None or not run.ended:
        return []
    answer: list[Block] = needed("predictions.view").outcome(run.report, prediction)
    return answer


def next_panel(name: str | None, by: int) -> str | None:
    """The one that follows in the order in which they can be chosen."""
    screen = present("live.screen")
    if screen is None:
        return None
    names: list[str] = [panel.name for panel in screen.ZOOMED]
    if name not in names:
        return names[by % len(names)]
    return names[(names.index(name) + by) % len(names)]
