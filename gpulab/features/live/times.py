"""Before and after: a bar a variant, as long as its time."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.statuses import Per, Status
from gpulab.core.units import about, interval, plus_minus, seconds, times
from gpulab.draw.area import Area
from gpulab.draw.panel import Band, Panel, Rows, bands, name_width
from gpulab.draw.styles import STYLES
from gpulab.features.live.activity import state_of
from gpulab.report.live import LiveReport
from gpulab.report.report import VariantReport
from gpulab.stats.verdicts import in_bar

_TIME, _WORDS = 8, 24
_WITH_INTERVAL = 90
_INTERVAL, _SPREAD = 15, 9


def _heading(run: LiveReport) -> tuple[str, str]:
    heading = f"time per {run.report.item}" if run.report.per == Per.ITEM else "time of a step"
    if run.predicted:
        return heading, f"predicted {times(run.predicted)}"
    return heading, "so far" * run.report.under_way


def _rows(run: LiveReport, width: int) -> Rows:
    count = max(2, len(run.report.variants))
    return Rows(min(count, 4), count, 4 * count, count)


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
    wide = area.width >= _WITH_INTERVAL
    words = _WORDS + (_INTERVAL + _SPREAD) * wide
    start = names + _TIME + 2
    cells = max(4, area.width - start - words - 1)
    row = band.middle
    area.put(row, 0, variant.name, most=names)
    time = variant.time_per(report.per)
    if time is not None and longest:
        text = seconds(time.value)
        area.put(row, names + 1 + max(0, _TIME - len(text)), text)
        style = "" if variant.name == report.baseline else "cyan"
        for bar_row in range(band.row, band.row + band.height):
            area.bar(bar_row, start, time.value / longest, cells, style)
        if wide:
            area.put(row, start + cells + 1, plus_minus(time))
    said, style = _said(run, variant)
    column = start + cells + 1 + _SPREAD * wide
    area.put(row, column, said, style, most=_WORDS + 1)
    if wide and (comparison := report.comparison(variant.name)):
        area.put(row, column + _WORDS + 1, interval(comparison.speedup))


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
