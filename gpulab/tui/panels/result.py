"""A run of a scenario: its progress while it goes on, its result once it has ended."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.report.live import live_detail
from gpulab.session.run import Run
from gpulab.session.run_files import at_home
from gpulab.tui.panels.selection import Selection
from gpulab.views.live.panel import LiveRun
from gpulab.views.live.screen import ZOOMED, live_view
from gpulab.views.pages.predict import outcome
from gpulab.views.results import failures, result
from gpulab.views.status import before_a_run


def content(selection: Selection) -> RenderableType:
    run, glyphs = selection.run, selection.glyphs
    if run is None:
        return before_a_run(selection.row, glyphs)
    if selection.look.zoomed or not run.ended:
        width, height = selection.look.size
        guess = median(selection.guesses) if selection.guesses else None
        pairs = [(entry.variant, entry.against) for entry in run.report.comparisons]
        live = LiveRun(run.report, live_detail(run.state, pairs), guess)
        chosen, zoomed = selection.look.panel, selection.look.zoomed
        return live_view(live, glyphs, width=width, height=height, chosen=chosen, zoomed=zoomed)
    run_file = at_home(Path(run.report.run_file))
    shown = result(run.report, glyphs, verbose=True)
    said = outcome(run.report, selection.guesses, glyphs, width=selection.look.size[0])
    return Group(*said, shown, Text(glyphs(f"run file: {run_file}"), "dim"), failures(run.report, glyphs))


def changing(run: Run) -> Hashable:
    """Once a second, and at a new stage, until it has ended."""
    progress = run.state.stage, run.state.stage_variant
    return run.source.path, run.ended or (progress, int(run.source.now()))


def next_panel(name: str | None, by: int) -> str:
    """The one that follows in the order in which they can be chosen."""
    names = [panel.name for panel in ZOOMED]
    place = names.index(name) if name in names else 0
    return names[(place + by) % len(names)]
