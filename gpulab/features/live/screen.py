"""The live screen as text: which panels there are at a size, where each stands, and how they are
drawn.

A new panel is a file beside this one, and a line in PANELS. All heights follow from the size and
the number of variants, so that nothing moves during a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from gpulab.core.statuses import Stage
from gpulab.draw.area import Area
from gpulab.draw.bars import gauge
from gpulab.draw.canvas import Canvas
from gpulab.features.goodput.panel import PARTS
from gpulab.features.live.narrowing import NARROWING
from gpulab.features.live.number import NUMBER
from gpulab.features.live.panel import LiveRun, Panel
from gpulab.features.live.printed import PRINTED
from gpulab.features.live.processes import PROCESSES
from gpulab.features.live.times import TIMES
from gpulab.features.roofline.panel import ROOFS
from gpulab.features.telemetry.view import CHARTS
from gpulab.report.report import RunReport

_SHOWN = {
    Stage.START: "start",
    Stage.CHECK: "check",
    Stage.MEASURE: "measure",
    Stage.RE_CHECK: "re-check",
    Stage.SOLO_RUN: "alone",
    Stage.CEILINGS: "ceilings",
    Stage.PROFILE: "profile",
}
_AS = {
    Stage.LOAD: Stage.START,
    Stage.BUILD: Stage.CHECK,
    Stage.TUNE: Stage.CHECK,
    Stage.CALIBRATE: Stage.CHECK,
    Stage.WARM_UP: Stage.CHECK,
    Stage.COUNT: Stage.CHECK,
    Stage.TEARDOWN: Stage.PROFILE,
    Stage.END: Stage.PROFILE,
}
"""Stages that are over before one can read their names."""
_CELLS = 14


def draw_stages(run: LiveRun, area: Area) -> None:
    progress = run.report.progress
    now = _AS.get(progress.stage, progress.stage)
    column, passed = 0, True
    for stage, words in _SHOWN.items():
        if stage == now:
            passed, text = False, _under_way(run.report)
            area.put(0, column, text, "bold")
            column += len(text) + 1
        elif area.width - column > len(words):
            area.put(0, column, words, "" if passed else "dim")
            column += len(words) + 1


def _under_way(report: RunReport) -> str:
    progress = report.progress
    words = _SHOWN[_AS.get(progress.stage, progress.stage)].upper()
    if not report.under_way:
        return str(report.outcome).upper()
    if progress.stage == Stage.MEASURE and progress.planned_processes:
        left_s = progress.remaining_s or 0.0
        share = progress.process / (
            progress.process + max(progress.planned_processes - progress.process, 0) + 1
        )
        left = f", {left_s:.0f} s left" if left_s >= 1 else ""
        return f"▸{words} {gauge(share, _CELLS)} process {progress.process}{left}"
    return " ".join(part for part in (f"▸{words}", progress.variant, progress.detail) if part)


PANELS = (TIMES, NARROWING, PROCESSES, ROOFS, PARTS, CHARTS, PRINTED)
"""In the order in which one reads them."""
ZOOMED = (NUMBER, *PANELS)
"""Those that can fill the screen."""
_FIRST = (TIMES, CHARTS, NARROWING, PRINTED, PROCESSES, ROOFS, PARTS)
"""In the order in which they get their fewest rows."""
_COLUMNS = {
    110: (((TIMES, NARROWING, PROCESSES), (ROOFS, PARTS)), (CHARTS, PRINTED)),
    158: (((TIMES, NARROWING, PARTS), (ROOFS,), (PROCESSES, PRINTED)), (CHARTS,)),
}
"""From which width on there are columns, the panels of each, and those below them."""
_GAP = 2
_SMALLEST = (66, 16)
"""Columns and rows below which one panel is shown at a time: what a terminal of 80x24 has for them
is more.
"""
_LEAST_ABOVE = 22
"""Rows of the two columns before the panels below them get more than their fewest."""


@dataclass(frozen=True)
class Place:
    """A panel and its rectangle, its heading included."""

    panel: Panel
    row: int
    column: int
    width: int
    height: int


def places(run: LiveRun, width: int, height: int) -> list[Place]:
    """Where the panels stand below the line of the stages; those without room for them are left
    out.
    """
    if height < 2:
        return []
    widest = max((least for least in _COLUMNS if least <= width), default=None)
    if widest is None:
        return _stacked(run, PANELS, 1, 0, width, height - 1)
    columns, full_width = _COLUMNS[widest]
    below = _stacked(
        run, full_width, 1, 0, width, max(height - 1 - _LEAST_ABOVE, (height - 1) // 3)
    )
    above = height - 1 - sum(place.height for place in below)
    sides, left = [], 0
    for number, panels in enumerate(columns, 1):
        right = number * (width + _GAP) // len(columns) - _GAP
        sides += _stacked(run, panels, 1, left, right - left, above)
        left = right + _GAP
    end = max((place.row + place.height for place in sides), default=1)
    return [*sides, *(replace(place, row=place.row + end - 1) for place in below)]


def _stacked(
    run: LiveRun, panels: Sequence[Panel], first_row: int, column: int, width: int, room: int
) -> list[Place]:
    """One below the other: every panel's fewest rows in their order, then what is left up to its
    most.
    """
    rows: dict[str, int] = {}
    for panel in sorted(panels, key=_FIRST.index):
        least = panel.rows(run, width).least + 1
        if least <= room:
            rows[panel.name] = least
            room -= least
    for panel in sorted(panels, key=_FIRST.index):
        if panel.name in rows:
            more = min(room, panel.rows(run, width).most + 1 - rows[panel.name])
            rows[panel.name] += more
            room -= more
    placed, row = [], first_row
    for panel in panels:
        if panel.name in rows:
            placed.append(Place(panel, row, column, width, rows[panel.name]))
            row += rows[panel.name]
    return placed


def live_view(
    run: LiveRun,
    *,
    width: int,
    height: int,
    chosen: str | None = None,
    zoomed: bool = False,
) -> Text:
    """All panels that have room, one of them `chosen`; or, where `zoomed` or on a small screen,
    that one alone.
    """
    canvas = Canvas(width, height)
    draw_stages(run, Area(canvas, 0, 0, width, 1))
    layout = places(run, width, height)
    if zoomed or width < _SMALLEST[0] or height < _SMALLEST[1]:
        panel = next((panel for panel in ZOOMED if panel.name == chosen), NUMBER)
        layout = [Place(panel, 1, 0, width, height - 1)]
    for place in layout:
        area = Area(canvas, place.row, place.column, place.width, place.height)
        _draw_heading(place.panel, run, area, chosen=place.panel.name == chosen)
        place.panel.draw(run, area.part(1, 0, place.width, place.height - 1))
    return canvas.text()


def panel_view(panel: Panel, run: LiveRun, *, width: int) -> Text:
    """One panel with its heading, as high as it can use."""
    height = panel.rows(run, width).most + 1
    canvas = Canvas(width, height)
    _draw_heading(panel, run, Area(canvas, 0, 0, width, 1), chosen=False)
    panel.draw(run, Area(canvas, 1, 0, width, height - 1))
    return canvas.text()


def _draw_heading(panel: Panel, run: LiveRun, area: Area, *, chosen: bool) -> None:
    """A rule with words in it; in reverse where it is the one that `z` makes fill the screen."""
    left, right = panel.heading(run)
    mark, style = ("▸", "bold reverse") if chosen else (" ", "bold")
    area.put(0, 0, "─" * area.width, "dim")
    area.put(0, 2, f"{mark}{left} ", style, most=area.width - 3)
    if right and len(left) + len(right) + 8 <= area.width:
        area.put(0, area.width - len(right) - 3, f" {right} ")
