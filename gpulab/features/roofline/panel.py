"""How far below its roof each variant is; the plot itself where there is room for it."""

from __future__ import annotations

from gpulab.core.payloads import LAUNCH
from gpulab.core.statuses import Stage
from gpulab.core.units import percent_of_roof
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows, bands, name_width, style_of
from gpulab.draw.plot import plot
from gpulab.features.roofline.figure import roofline_figure
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import marked
from gpulab.report.live import LiveReport
from gpulab.report.report import RunReport

_PLOT_ROWS, _PLOT_COLUMNS = 12, 50
_PERCENT, _BOUND = 6, 14
_MOST_ROWS = 40
_BEFORE_ROUNDS = (
    Stage.START,
    Stage.LOAD,
    Stage.BUILD,
    Stage.TUNE,
    Stage.CHECK,
    Stage.CALIBRATE,
    Stage.WARM_UP,
    Stage.COUNT,
)


def _heading(run: LiveReport) -> tuple[str, str]:
    return "distance to roof", "the whole plot: its own tab"


def _rows(run: LiveReport, width: int) -> Rows:
    count = max(1, len(run.variants))
    return Rows(min(count, 3), count, _MOST_ROWS)


def _draw(run: LiveReport, area: Area) -> None:
    points = {variant.name: variant.roofline for variant in run.report.variants if variant.roofline}
    roofline = roofline_of(run.report)
    if not points or roofline is None or _roofs_are_to_come(run.report):
        area.put_lines(_why_none(run))
        return
    if area.height >= _PLOT_ROWS and area.width >= _PLOT_COLUMNS:
        figure = roofline_figure(roofline)
        if figure is not None:
            drawn = plot(figure, area.width, area.height)
            for row, line in enumerate(drawn.split(allow_blank=True)):
                area.put_text(row, 0, line)
            return
    names = name_width(run, area.width)
    cells = max(4, area.width - names - _PERCENT - _BOUND - 3)
    shown = list(points.items())[: area.height]
    for (name, point), band in zip(shown, bands(len(shown), area.height), strict=True):
        row = band.middle
        style = style_of(name, run.report.baseline)
        area.put(row, 0, name, style, most=names)
        share = f"{percent_of_roof(point.fraction.value)} %"
        area.put(row, names + 1 + max(0, _PERCENT - len(share)), share)
        start = names + _PERCENT + 2
        area.put(row, start, "·" * cells, "bright_black", most=cells)
        for bar_row in range(band.row, band.row + band.height):
            area.bar(bar_row, start, point.fraction.value, cells, style)
        area.put(row, names + _PERCENT + 2 + cells + 1, marked(point))


def _roofs_are_to_come(report: RunReport) -> bool:
    """Return whether this run has yet to measure the roofs: until then they are those of a
    datasheet, of an earlier run, or a part of its own.
    """
    device, known = report.device, report.ceilings
    if not report.under_way or device is None or known is None:
        return False
    if device.on_gpu and (known.cached or report.quick):
        return False  # none are measured
    has_all = any(ceiling.roof == LAUNCH for ceiling in known.ceilings)
    return known.cached or not has_all or report.progress.stage == Stage.CEILINGS


def _why_none(run: LiveReport) -> str:
    variants = run.variants
    unknown = not variants or any(entry.name not in run.detail.built for entry in variants)
    if run.report.under_way and unknown and run.report.progress.stage in _BEFORE_ROUNDS:
        return "not known yet: a variant declares its work when it is built"
    if all(entry.flops is None and getattr(entry, "ranks", ()) for entry in variants):
        return "no variant declares its FLOPs, and bytes between ranks are no roof of one device"
    if all(entry.flops is None and entry.bytes is None for entry in variants):
        return (
            "no variant declares its work (Work(flops=, bytes=)), so there is no roof to compare "
            "with"
        )
    if run.report.ceilings is None or _roofs_are_to_come(run.report):
        return "the roofs of this device are measured after the rounds"
    return "no time so far"


_ABOUT = (
    "How much of the best this device can do each variant reaches: of its memory or of its "
    "arithmetic, whichever is the nearer limit for that work. The word beside it says what holds "
    "it back."
)
ROOFS = Panel("roofline", _heading, _rows, _draw, _ABOUT, beside_variants=0)
