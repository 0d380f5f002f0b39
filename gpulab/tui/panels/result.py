"""A run of a scenario: its progress while it goes on, its result once it has ended."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.session.run import Run
from gpulab.session.run_files import at_home
from gpulab.tui.panels.selection import Selection
from gpulab.views.progress import progress_view
from gpulab.views.results import failures, result
from gpulab.views.status import before_a_run


def content(selection: Selection) -> RenderableType:
    run, glyphs = selection.run, selection.glyphs
    if run is None:
        return before_a_run(selection.row, glyphs)
    if not run.ended:
        return progress_view(run.report, glyphs)
    run_file = at_home(Path(run.report.run_file))
    shown = result(run.report, glyphs, verbose=True)
    return Group(shown, Text(glyphs(f"run file: {run_file}"), "dim"), failures(run.report, glyphs))


def changing(run: Run) -> Hashable:
    """Everything, until it has ended."""
    return (run.source.path, True) if run.ended else object()
