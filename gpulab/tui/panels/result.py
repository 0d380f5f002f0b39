"""A run of a scenario: its progress while it goes on, its result once it has ended."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.session.run import Run
from gpulab.session.run_files import at_home
from gpulab.tui.panels.tabs import Selection
from gpulab.views.findings import sentence
from gpulab.views.progress import progress_view
from gpulab.views.results import failures, result


def content(selection: Selection) -> RenderableType:
    run, glyphs = selection.run, selection.glyphs
    if run is None:
        return before_a_run(selection)
    if not run.ended:
        return progress_view(run.report, glyphs)
    run_file = at_home(Path(run.report.run_file))
    return Group(result(run.report, glyphs), Text(glyphs(f"run file: {run_file}"), "dim"), failures(run.report, glyphs))


def changing(run: Run) -> Hashable:
    """Everything, until it has ended."""
    return (run.source.path, True) if run.ended else object()


def before_a_run(selection: Selection) -> Text:
    """What there is to say of a scenario that has not run: how to, or why it cannot."""
    row, glyphs = selection.row, selection.glyphs
    if row.error:
        return Text(glyphs(row.error), "red")
    return Text(glyphs(f"It cannot run here: {sentence(row.missing)}" if row.missing else "r runs it."), "dim")
