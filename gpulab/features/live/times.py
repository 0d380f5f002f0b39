"""Before and after: a bar a variant, as long as its time."""

from __future__ import annotations

from gpulab.core.statuses import Status
from gpulab.core.units import plus_minus, seconds, span, times
from gpulab.draw.area import Area
from gpulab.draw.styles import STYLES
from gpulab.features.live.panel import LiveRun, Panel, Rows, name_width
from gpulab.report.report import VariantReport
from gpulab.report.view import preliminary

_TIME, _WORDS = 8, 19
_WITH_INTERVAL = 90
_INTERVAL, _SPREAD = 15, 9


def _heading(run: LiveRun) -> tuple[str, str]:
    heading = "time of an item" if run.report.per == "item" else "time of a step"
    if run.predicted:
        return heading, f"predicted {times(run.predicted)}"
    return heading, "so far" * run.report.under_way


def _rows(run: LiveRun, width: int) -> Rows:
    count = max(2, len(run.report.variants))
    return Rows(min(count, 4), count)


def _draw(run: LiveRun, area: Area) -> None:
    report, names = run.report, name_width(run)
    longest = max((time.median for _, time in run.timed), default=0.0)
    wide = area.width >= _WITH_INTERVAL
    words = _WORDS + (_INTERVAL + _SPREAD) * wide
    cells = max(4, area.width - names - _TIME - words - 3)
    shown = report.variants
    if len(shown) > area.height:
        shown = shown[: area.height - 1]
    for row, variant in enumerate(shown):
        area.put(row, 0, variant.name, most=names)
        time = variant.time_per(report.per)
        if time is not None and longest:
            text = seconds(time.median)
            area.put(row, names + 1 + max(0, _TIME - len(text)), text)
            area.bar(row, names + _TIME + 2, time.median / longest, cells, "cyan" if row else "")
            if wide:
                area.put(
                    row, names + _TIME + 2 + cells + 1, plus_minus(time.low, time.high, time.median)
                )
        said, style = _said(run, variant)
        column = names + _TIME + 2 + cells + 1 + _SPREAD * wide
        area.put(row, column, said, style, most=_WORDS + 1)
        if wide and (comparison := report.comparison(variant.name)):
            area.put(row, column + _WORDS + 1, span(comparison.low, comparison.high))
    if len(shown) < len(report.variants):
        area.put(len(shown), 0, f"and {len(report.variants) - len(shown)} more", "dim")


def _said(run: LiveRun, variant: VariantReport) -> tuple[str, str]:
    """Beside a bar: the speedup with its verdict so far, or why there is none."""
    if variant.status not in (Status.OK, Status.PENDING):
        return variant.status, STYLES[variant.status]
    comparison = run.report.comparison(variant.name)
    if comparison is None:
        return "baseline" * (variant.name == run.report.baseline), ""
    if comparison.speedup is None:
        return preliminary(run.report, comparison), ""
    return f"{times(comparison.speedup)} {comparison.verdict}", STYLES[comparison.verdict]


_ABOUT = (
    "A bar a variant, as long as one step takes: half as long is twice as fast. Beside it stands "
    "how many times as fast it is as what it is compared with, and what may be said of that so "
    "far."
)
TIMES = Panel("times", _heading, _rows, _draw, _ABOUT)
