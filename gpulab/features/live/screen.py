"""The live screen as text: which panels there are at a size, where each stands, and how they are
drawn.

A new panel is a file beside this one, or in the folder of another feature, and its places below;
those of a followed program alone are found as views. All heights follow from the size and the
number of variants, so that nothing moves during a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpulab.core.statuses import Stage
from gpulab.draw.area import Area
from gpulab.draw.bars import gauge
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import Canvas
from gpulab.draw.frame import draw_frame, edge_rows, inner_width
from gpulab.draw.panel import Panel
from gpulab.features import needed, views
from gpulab.features.live.activity import STAGES, activity, time_left
from gpulab.features.live.narrowing import NARROWING
from gpulab.features.live.number import NUMBER
from gpulab.features.live.printed import PRINTED
from gpulab.features.live.processes import PROCESSES
from gpulab.features.live.times import TIMES
from gpulab.report.feature import Section
from gpulab.report.live import LiveReport

_CELLS = 14


def draw_stages(run: LiveReport, area: Area) -> None:
    progress = run.report.progress
    if run.report.get("program") is not None:
        words = str(run.report.outcome).upper()
        if run.report.under_way:
            words = f"▸FOLLOWING {run.report.scenario}, {progress.elapsed_s:.0f} s"
        return area.put(0, 0, words, "bold")
    now = STAGES[progress.stage].shown
    column, passed = 0, True
    for words in dict.fromkeys(stage.shown for stage in STAGES.values()):
        if words == now:
            passed, text = False, _under_way(run)
            area.put(0, column, text, "bold cyan")
            column += len(text) + 1
        elif area.width - column > len(words):
            area.put(0, column, words, "green" if passed else "bright_black")
            column += len(words) + 1
        else:
            return


def _under_way(run: LiveReport) -> str:
    progress = run.report.progress
    words = STAGES[progress.stage].shown.upper()
    if not run.report.under_way:
        return str(run.report.outcome).upper()
    if progress.stage == Stage.MEASURE and progress.planned_processes:
        ended = max(0, progress.process - 1)
        share = ended / max(progress.planned_processes, progress.process)
        left = time_left(progress)
        return f"▸{words} {gauge(share, _CELLS)} process {progress.process}{left and f', {left}'}"
    return f"▸{words} {activity(progress)}, {run.stage_s:.0f} s"


def _panel(place: str) -> Panel:
    """Load the panel of another feature."""
    module, _, name = place.partition(":")
    panel: Panel = getattr(needed(module), name)
    return panel


_ROOFS = _panel("roofline.panel:ROOFS")
_PARTS = _panel("goodput.panel:PARTS")
_CHARTS = _panel("telemetry.view:CHARTS")
_PROGRAM = tuple(_panel(view.place) for view in views(Section.PANELS))
_PANELS = (TIMES, NARROWING, PROCESSES, _ROOFS, _PARTS, _CHARTS, PRINTED)
"""In the order in which one reads them."""
ZOOMED = (NUMBER, *_PANELS)
"""Those that can fill the screen."""
_PROGRAM_PANELS = (*_PROGRAM, _CHARTS, PRINTED)
"""Those of a program that is followed."""
_FIRST = (*_PROGRAM, TIMES, NARROWING, _CHARTS, PRINTED, PROCESSES, _ROOFS, _PARTS)
"""In the order in which they get their fewest rows."""
_NEEDED = (*_PROGRAM, TIMES, _CHARTS, NARROWING, PRINTED, PROCESSES, _ROOFS, _PARTS)
"""In the order in which they get what they need."""
_GROWING = (
    (*_PROGRAM, TIMES, NARROWING, PROCESSES, _CHARTS),
    (_ROOFS, _PARTS, PRINTED),
)
"""Those that get rows that nobody needs in turn, and those that get what they leave: they may stay
empty.
"""
_COLUMNS = {
    106: ((0.57, (TIMES, NARROWING)), (1.0, (_PARTS, _ROOFS, PROCESSES))),
    170: ((0.35, (TIMES, PROCESSES)), (0.69, (NARROWING,)), (1.0, (_PARTS, _ROOFS))),
}
"""From which width on there are columns; the share of the width where each ends, and its panels."""
_BELOW = (_CHARTS, PRINTED)
"""The panels below columns."""
_SHORT_NAME = 14
"""Cells of a name: each more takes two from a width before there are columns."""
_LOWER_SHARE = 0.48
"""Of the rows, the part of the panels below columns."""
_CLOSED = (72, 30)
"""Columns and rows from which on panels have whole frames, not only an upper edge."""
_STACKED_CLOSED, _ROWS_OF_A_VARIANT = 24, 3
"""Rows that panels below each other need for that, and for each variant more."""
_GAP = 2
_SMALLEST = (56, 15)
"""Columns and rows below which one panel is shown at a time."""


@dataclass(frozen=True)
class Place:
    """A panel and its rectangle, its frame included: `closed`, or only the upper edge."""

    panel: Panel
    row: int
    column: int
    width: int
    height: int
    closed: bool = False


def places(run: LiveReport, width: int, height: int) -> list[Place]:
    """Return where the panels stand below the line of the stages; those without room for them are
    left out.
    """
    if height < 2:
        return []
    closed = width >= _CLOSED[0] and height >= _CLOSED[1]
    stacked_closed = closed and height >= _STACKED_CLOSED + _ROWS_OF_A_VARIANT * len(run.variants)
    if run.report.get("program") is not None:
        return _stacked(run, _PROGRAM_PANELS, 0, width, height - 1, closed=closed)
    longest = max((len(variant.name) for variant in run.report.variants), default=0)
    for_columns = width - 2 * max(0, longest - _SHORT_NAME)
    widest = max((least for least in _COLUMNS if least <= for_columns), default=None)
    if widest is None:
        return _stacked(run, _PANELS, 0, width, height - 1, closed=stacked_closed)
    columns = _COLUMNS[widest]
    below = _stacked(run, _BELOW, 0, width, int((height - 1) * _LOWER_SHARE), closed=closed)
    above = height - 1 - sum(place.height for place in below)
    sides, left = [], 0
    for end, panels in columns:
        right = int(end * (width + _GAP)) - _GAP
        column = _stacked(run, panels, left, right - left, above, closed=closed)
        rest = above - sum(place.height for place in column)
        column[-1:] = [replace(place, height=place.height + rest) for place in column[-1:]]
        sides += column
        left = right + _GAP
    return [*sides, *(replace(place, row=place.row + above) for place in below)]


def _stacked(
    run: LiveReport, panels: Sequence[Panel], column: int, width: int, room: int, *, closed: bool
) -> list[Place]:
    """One below the other: first every panel's fewest rows in their order, then what it needs, and
    then what is left, in turn.
    """
    edges = edge_rows(closed=closed)
    inner = inner_width(width, closed=closed)
    sizes = {panel.name: panel.rows(run, inner) for panel in panels}
    rows: dict[str, int] = {}
    for panel in sorted(panels, key=_FIRST.index):
        least = sizes[panel.name].least + edges
        if sizes[panel.name].most and least <= room:
            rows[panel.name] = least
            room -= least
    for name in [panel.name for panel in _NEEDED if panel.name in rows]:
        more = max(0, min(room, sizes[name].enough + edges - rows[name]))
        rows[name] += more
        room -= more
    for group in _GROWING:
        growing = [panel.name for panel in group if panel.name in rows]
        while growing:
            for name in list(growing):
                size = sizes[name]
                if size.step <= room and rows[name] + size.step <= size.most + edges:
                    rows[name] += size.step
                    room -= size.step
                else:
                    growing.remove(name)
    placed = []
    row = 1
    for panel in panels:
        if panel.name in rows:
            placed.append(Place(panel, row, column, width, rows[panel.name], closed))
            row += rows[panel.name]
    return placed


def live_view(
    run: LiveReport,
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
        closed = width >= _CLOSED[0] and height >= _CLOSED[1]
        layout = [Place(panel, 1, 0, width, height - 1, closed)]
    for place in layout:
        area = Area(canvas, place.row, place.column, place.width, place.height)
        chosen_one = place.panel.name == chosen
        inside = _framed(place.panel, run, area, chosen=chosen_one, closed=place.closed)
        place.panel.draw(run, inside)
    return canvas.text()


def panel_view(
    panel: Panel, run: LiveReport, *, width: int, height: int | None = None, headed: bool = True
) -> Text:
    """One panel, with its heading where it is `headed`; by default as high as it needs."""
    if height is None:
        height = panel.rows(run, width).enough + headed
    canvas = Canvas(width, height)
    area = Area(canvas, 0, 0, width, height)
    if headed:
        area = _framed(panel, run, area, chosen=False, closed=False)
    panel.draw(run, area)
    return canvas.text()


def _framed(panel: Panel, run: LiveReport, area: Area, *, chosen: bool, closed: bool) -> Area:
    """Draw the frame of the panel, and return what is inside."""
    left, right = panel.heading(run)
    right = panel.missing(run, area.height - edge_rows(closed=closed)) or right
    return draw_frame(area, left, right, chosen=chosen, closed=closed)
