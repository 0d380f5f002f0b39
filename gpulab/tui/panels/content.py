"""What each tab shows of a scenario and its last run."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.protocol.listing import ScenarioRow
from gpulab.report.roofline_points import roofline_of
from gpulab.session.run import Run
from gpulab.session.run_files import at_home
from gpulab.views.findings import sentence
from gpulab.views.lesson import lesson
from gpulab.views.log import log
from gpulab.views.progress import progress_view
from gpulab.views.results import failures, result
from gpulab.views.roofline.reasons import reasons
from gpulab.views.roofline.view import families, roofline_view
from gpulab.views.text import Glyphs


def content_of(
    tab: str, row: ScenarioRow, run: Run | None, glyphs: Glyphs, *, size: tuple[int, int], family: str | None
) -> RenderableType:
    """`size`: columns and rows of the tab. `family`: whose roofline is drawn; None for that of the first point."""
    if tab == "lesson":
        return lesson(row, glyphs)
    if run is None:
        return _not_run_yet(row, glyphs)
    if tab == "log":
        return log(run.report, glyphs)
    if tab == "roofline":
        return _roofline(run, glyphs, size, family)
    if not run.ended:
        return progress_view(run.report, glyphs)
    return Group(
        result(run.report, glyphs),
        Text(glyphs(f"run file: {at_home(Path(run.report.run_file))}"), "dim"),
        failures(run.report, glyphs),
    )


def changing(tab: str, run: Run) -> Hashable:
    """What must have changed for a tab to be laid out again: points of a roofline move once a second."""
    match tab:
        case "lesson":
            return None
        case "log":
            return run.source.path, run.ended, run.state.log.count, len(run.state.failures)
        case "roofline":
            return run.source.path, run.ended, int(run.state.t), id(run.state.ceilings)
        case _:
            return (run.source.path, True) if run.ended else object()


def _not_run_yet(row: ScenarioRow, glyphs: Glyphs) -> Text:
    if row.error:
        return Text(glyphs(row.error), "red")
    return Text(glyphs(f"It cannot run here: {sentence(row.missing)}" if row.missing else "r runs it."), "dim")


def _roofline(run: Run, glyphs: Glyphs, size: tuple[int, int], family: str | None) -> RenderableType:
    roofline = roofline_of(run.report)
    if roofline is None:
        return Text(glyphs("No roofline so far: the ceilings of the device have not been measured."), "dim")
    drawn = roofline_view(roofline, glyphs, width=size[0], height=size[1], family=family)
    hint = "f draws another type of numbers\n" if len(families(roofline)) > 1 else ""
    return Group(drawn, Text(hint, "dim"), reasons(roofline.points, glyphs))
