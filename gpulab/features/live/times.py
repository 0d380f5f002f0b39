"""Before and after: a bar a variant, as long as its time."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.statuses import Per, Status, Verdict
from gpulab.core.units import about, interval, plus_minus, seconds, times
from gpulab.draw.area import Area
from gpulab.draw.canvas import wide
from gpulab.draw.panel import Band, Panel, Rows, bands, name_width, style_of
from gpulab.draw.styles import STYLES
from gpulab.features.live.activity import state_of
from gpulab.report.live import LiveReport
from gpulab.report.report import VariantReport
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import in_bar

_TIME, _WORDS, _SPREAD = 8, 24, 9
_INTERVALS = (15, 4, 0)
"""Cells for an interval beside the words, beside short words, and none."""
_SHORTEST_BAR = 11
"""Cells that the bars keep where an interval, and then a spread, stands beside them."""
_FEW = 4
"""Variants that have an interval in a second row where there is no room beside the first."""
_TROUBLE = (Verdict.SLOWER, Verdict.WRONG, Verdict.INVALID)


def _heading(run: LiveReport) -> tuple[str, str]:
    heading = f"time per {run.report.item}" if run.report.per == Per.ITEM else "time of a step"
    if run.predicted:
        return heading, f"predicted {times(run.predicted)}"
    return heading, "so far" * run.report.under_way


def _beside(names: int, width: int) -> tuple[int, int]:
    """Return the cells of an interval and of a spread beside a bar: 0 where they have no room."""
    room = width - names - _TIME - 2 - _WORDS - 1 - _SHORTEST_BAR
    interval_cells = next((cells for cells in _INTERVALS if cells <= room), 0)
    with_spread = room >= interval_cells + _SPREAD and interval_cells == _INTERVALS[0]
    return interval_cells, _SPREAD * with_spread


def _rows(run: LiveReport, width: int) -> Rows:
    count = max(2, len(run.report.variants))
    interval_cells, _ = _beside(name_width(run, width), width)
    few = count <= _FEW and not interval_cells
    enough = 2 * count if few else count
    return Rows(min(count, 6), enough, 3 * count, count)


def _draw(run: LiveReport, area: Area) -> None:
    longest = max((time.value for _, time in run.report.timed), default=0.0)
    variants: Sequence[VariantReport] = run.report.variants
    if len(variants) > area.height:
        variants = run.variants[: area.height]
    for variant, band in zip(variants, bands(len(variants), area.height), strict=True):
        _draw_variant(run, area, variant, band, longest)


def _draw_variant(
    run: LiveReport, area: Area, variant: VariantReport, band: Band, longest: float
) -> None:
    report = run.report
    names = name_width(run, area.width)
    interval_cells, spread_cells = _beside(names, area.width)
    start = names + _TIME + 2
    cells = max(4, area.width - start - spread_cells - _WORDS - interval_cells - 1)
    row = band.middle
    comparison = report.comparison(variant.name)
    area.put(row, 0, variant.name, style_of(variant.name, report.baseline), most=names)
    time = variant.time_per(report.per)
    if time is not None and longest:
        text = seconds(time.value)
        area.put(row, names + 1 + max(0, _TIME - len(text)), text)
        style = _style_of_bar(report.baseline, variant, comparison)
        for bar_row in range(band.row, band.row + band.height):
            area.bar(bar_row, start, time.value / longest, cells, style)
        if spread_cells:
            area.put(row, start + cells + 1, plus_minus(time))
    said, style = _said(run, variant)
    column = start + cells + 1 + spread_cells
    area.put(row, column, said, style, most=_WORDS + 1)
    ends = interval(comparison.speedup) if comparison else ""
    if interval_cells and wide(f"{said} {ends}") <= _WORDS + interval_cells:
        area.put_right(row, ends)
    elif band.height + band.gap > 1:
        area.put(row + 1, column, ends)


def _style_of_bar(baseline: str | None, variant: VariantReport, found: Comparison | None) -> str:
    if found is not None and found.speedup is not None and found.verdict in _TROUBLE:
        return "red"
    return style_of(variant.name, baseline)


def _said(run: LiveReport, variant: VariantReport) -> tuple[str, str]:
    """Beside a bar: the speedup with its verdict so far, or why there is none."""
    if variant.status not in (Status.OK, Status.PENDING):
        return variant.status, STYLES[variant.status]
    unknown = variant.time_s is None or run.report.progress.variant == variant.name
    if unknown and not run.is_prepared:
        return state_of(run, variant), ""
    comparison = run.report.comparison(variant.name)
    if comparison is None:
        return "baseline" * (variant.name == run.report.baseline), ""
    if comparison.speedup is None:
        return about(run.report.preliminary_speedup(comparison)), ""
    return in_bar(comparison), STYLES[comparison.verdict]


_ABOUT = (
    "A bar a variant, as long as one step takes: half as long is twice as fast. Beside it stands "
    "how many times as fast it is as what it is compared with, and what may be said of that so "
    "far."
)
TIMES = Panel("times", _heading, _rows, _draw, _ABOUT, beside_variants=0)
