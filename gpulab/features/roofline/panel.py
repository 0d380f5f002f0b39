"""How far below its roof each variant is; the plot itself where there is room for it."""

from __future__ import annotations

from gpulab.core.payloads import LAUNCH
from gpulab.core.units import percent_of_roof
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows, bands, name_width, style_of
from gpulab.draw.plot import plot
from gpulab.features.roofline.bound import Point
from gpulab.features.roofline.figure import roofline_figure
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import marked
from gpulab.report.live import LiveReport
from gpulab.report.report import RunReport

_PERCENT, _BOUND = 6, 14


def _heading(run: LiveReport) -> tuple[str, str]:
    return "distance to roof", "the whole plot: its own tab"


def _rows(run: LiveReport, width: int) -> Rows:
    count = max(1, len(run.variants))
    return Rows(min(count, 3), count, most=40)


def _draw(run: LiveReport, area: Area) -> None:
    roofline = roofline_of(run.report)
    if roofline is None or not roofline.points or _roofs_are_to_come(run.report):
        area.put_lines(_why_none(run))
        return
    has_room = area.height >= 12 and area.width >= 50
    figure = roofline_figure(roofline) if has_room else None
    if figure is None:
        _draw_shares(run, area, list(roofline.points))
        return
    for row, line in enumerate(plot(figure, area.width, area.height).split(allow_blank=True)):
        area.put_text(row, 0, line)


def _draw_shares(run: LiveReport, area: Area, points: list[Point]) -> None:
    """A bar a variant, with its share and what limits it."""
    names = name_width(run, area.width)
    start = names + _PERCENT + 2
    cells = max(4, area.width - start - _BOUND - 1)
    points = points[: area.height]
    for point, band in zip(points, bands(len(points), area.height), strict=True):
        style = style_of(point.variant, run.report.baseline)
        area.put(band.middle, 0, point.variant, style, most=names)
        share = f"{percent_of_roof(point.fraction.value)} %"
        area.put(band.middle, names + 1, f"{share:>{_PERCENT}}")
        area.put(band.middle, start, "·" * cells, "bright_black", most=cells)
        for row in range(band.row, band.row + band.height):
            area.bar(row, start, point.fraction.value, cells, style)
        area.put(band.middle, start + cells + 1, marked(point))


def _roofs_are_to_come(report: RunReport) -> bool:
    """Return whether this run has yet to measure the roofs, the launches last of all: until then
    they are those of a datasheet, or a part of its own. Those of an earlier run are shown.
    """
    known = report.ceilings
    quick = report.on_gpu and report.quick
    if not report.under_way or known is None or known.cached or quick:
        return False
    return all(ceiling.roof != LAUNCH for ceiling in known.ceilings)


def _why_none(run: LiveReport) -> str:
    if any(entry.name not in run.detail.built for entry in run.variants) or not run.variants:
        return "not known yet: a variant declares its work when it is built"
    if all(entry.flops is None and entry.bytes is None for entry in run.variants):
        return (
            "no variant declares its work (Work(flops=, bytes=)), so there is no roof to compare "
            "with"
        )
    if run.report.under_way:
        return "the roofs of this device are measured after the rounds"
    return "no roof of one device is known for the work that variants declare"


_ABOUT = (
    "How much of the best this device can do each variant reaches: of its memory or of its "
    "arithmetic, whichever is the nearer limit for that work. The word beside it says what holds "
    "it back."
)
ROOFS = Panel("roofline", _heading, _rows, _draw, _ABOUT, beside_variants=0)
