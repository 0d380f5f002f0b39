"""How far below its roof each variant is; the plot itself where there is room for it."""

from __future__ import annotations

from rich.text import Text

from gpulab.core.units import percent_of_roof
from gpulab.draw.area import Area
from gpulab.features.live.panel import LiveRun, Panel, Rows, name_width
from gpulab.features.roofline.bound import Roofline
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import layout_of, marked, roofline_view

_PLOT_ROWS, _PLOT_COLUMNS = 14, 50
_PERCENT, _BOUND = 6, 14
_AROUND_TABLE = 2


def _heading(run: LiveRun) -> tuple[str, str]:
    return "distance to roof", "the whole plot: its own tab"


def _rows(run: LiveRun, width: int) -> Rows:
    count = max(1, len(run.report.variants))
    plot = _PLOT_ROWS + _AROUND_TABLE + count if width >= _PLOT_COLUMNS else 0
    return Rows(min(count, 3), max(count, plot))


def _draw(run: LiveRun, area: Area) -> None:
    points = {variant.name: variant.roofline for variant in run.report.variants if variant.roofline}
    roofline = roofline_of(run.report)
    if not points or roofline is None:
        area.put_lines(0, _why_none(run))
        return
    if area.height >= _PLOT_ROWS and area.width >= _PLOT_COLUMNS:
        drawn = _plot(roofline, area)
        for row, line in enumerate(drawn.split("\n")[: area.height]):
            area.put_text(row, 0, line)
        return
    names = name_width(run)
    cells = max(4, area.width - names - _PERCENT - _BOUND - 3)
    for row, (name, point) in enumerate(list(points.items())[: area.height]):
        area.put(row, 0, name, most=names)
        share = f"{percent_of_roof(point.fraction)} %"
        area.put(row, names + 1 + max(0, _PERCENT - len(share)), share)
        area.bar(
            row,
            names + _PERCENT + 2,
            point.fraction,
            cells,
            "cyan" if name != run.report.baseline else "",
        )
        area.put(row, names + _PERCENT + 2 + cells + 1, marked(point))


def _plot(roofline: Roofline, area: Area) -> Text:
    """The plot with the table of its points, or alone, where that has no room: letters and names
    stand in the plot.
    """
    height, width = area.height, area.width
    layout = layout_of(roofline, width=width, height=height)
    if layout.plot and layout.height > height:
        below = layout.height - layout.table_at[0]
        layout = layout_of(roofline, width=width, height=height + below)
        height += below - max(0, layout.table_at[0] - area.height)
    return roofline_view(roofline, width=width, height=height)


def _why_none(run: LiveRun) -> str:
    if all(variant.flops is None and variant.bytes is None for variant in run.report.variants):
        return (
            "no variant declares its work (Work(flops=, bytes=)), so there is no roof to compare "
            "with"
        )
    return "no time so far"


_ABOUT = (
    "How much of the best this device can do each variant reaches: of its memory or of its "
    "arithmetic, whichever is the nearer limit for that work. The word beside it says what holds "
    "it back."
)
ROOFS = Panel("roofline", _heading, _rows, _draw, _ABOUT)
