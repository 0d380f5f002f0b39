"""The speedup of each process as a dot on one axis, with the median so far and, from eight
processes on, its interval. Older rows stay, so that one sees it narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, floor, log, log2
from statistics import median

from gpulab.core.units import interval, span, three_digits, times
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis
from gpulab.draw.panel import VARIANT, Panel, Rows
from gpulab.draw.styles import STYLES
from gpulab.features.live.activity import draw_preparation
from gpulab.report.live import LiveReport
from gpulab.stats.comparison import Comparison
from gpulab.stats.statistics import FEWEST, Interval, as_speedup, correlated_interval

_LABEL, _INTERVAL, _FIGURES = 10, 14, 22
_GAP = 2
"""Cells between the last label of the axis and what stands right of it."""
_WITH_MEDIANS = 60
"""Columns from which on the figures of an interval have its median before them."""
_WITH_CONTROL = 8
"""Rows from which on the last one is the control's."""
_ENOUGH, _MOST = 11, 36
_FIRST_SPREAD = 0.1
_FEWEST_TO_FIT = 3
"""Processes from which on the axis fits their spread."""
_NEAR_ONE = 0.25
_ROOM = 0.25
"""Of the spread, on both sides of it."""


def _heading(run: LiveReport) -> tuple[str, str]:
    if not run.is_prepared:
        return "confidence: before the first process", ""
    comparison = run.main_comparison
    if comparison is None:
        return "confidence", ""
    control = run.report.control
    right = "● a process  ┃ median so far"
    if control is not None and control.speedup is not None:
        right += f"  control {control.verdict}"
    return f"confidence: {comparison.variant} over {comparison.against}", right


def _rows(run: LiveReport, width: int) -> Rows:
    if run.report.functions or not run.report.compares:
        return Rows(0, 0, 0, 1)
    return Rows(3, _ENOUGH, _MOST, 2)


def _draw(run: LiveReport, area: Area) -> None:
    comparison = run.main_comparison
    if not run.is_prepared:
        draw_preparation(run, area)
        return
    if comparison is None or not run.ratios(comparison):
        area.put(0, 0, _why_no_ratio(run, comparison))
        return
    rows = area.height
    if rows >= _WITH_CONTROL:
        rows -= 1
        _draw_control(run, area)
    _draw_ratios(run, comparison, area.part(0, 0, area.width, rows))


def _draw_ratios(run: LiveReport, comparison: Comparison, area: Area) -> None:
    ratios = run.ratios(comparison)
    with_medians = area.width >= _WITH_MEDIANS
    cells = max(10, area.width - _LABEL - 2 - (_FIGURES if with_medians else _INTERVAL))
    start = _LABEL + 1
    axis = axis_of(ratios, cells)
    area.put(0, 0, "processes", most=_LABEL)
    caption = "99 % interval" if len(ratios) >= FEWEST else f"from {FEWEST} on: 99 %"
    room = area.width - len(caption) - _GAP
    for cell, label in axis.ticks(_label):
        if start + cell + len(label) <= room:
            area.put(0, start + cell, label)
    area.put_right(0, caption)
    first_row = 1
    if run.predicted:
        area.put(1, 0, "predicted", most=_LABEL)
        area.put(1, start + axis.inside(run.predicted), _mark_at(axis, run.predicted, "?"), "bold")
        area.put_right(1, times(run.predicted))
        first_row = 2
    counts = counts_of(len(ratios), area.height - first_row)
    planned = run.report.progress.planned_processes or 0
    gap = 2 if 2 * max(planned, len(counts)) <= area.height - first_row else 1
    done = 0
    for place, count in enumerate(counts):
        row = first_row + place * gap
        now = count == len(ratios)
        median_mark = "┃"
        label = f"{count}{' now' * (now and run.report.under_way)}"
        area.put(row, max(0, _LABEL - len(label)), label)
        interval = look(ratios, count)
        style = STYLES[comparison.verdict] if now and interval is not None else ""
        dots = style or VARIANT
        so_far = exp(-median(ratios[:count]))
        if interval is not None:
            three = interval.low, so_far, interval.high
            area.interval(row, start, axis, three, style or "bright_black")
            median_mark = "┿"
            ends = span(interval.low, interval.high)
            figures = f"{times(so_far)}  {ends}" if with_medians else ends
        else:
            figures = times(so_far)
            if with_medians and now and run.report.under_way:
                figures = first_interval(ratios[:-1]) or figures
        area.put(
            row, start + axis.inside(so_far), _mark_at(axis, so_far, median_mark), style or "bold"
        )
        for ratio in ratios[done:count]:
            own = exp(-ratio)
            area.put(row, start + axis.inside(own), _mark_at(axis, own, "●"), dots)
        area.put_right(row, figures, style)
        done = count


def _mark_at(axis: LogAxis, value: float, mark: str) -> str:
    """The mark; an arrow where the value lies outside of the axis."""
    if axis.cell(value) < 0:
        return "◀"
    return "▶" if axis.cell(value) >= axis.cells else mark


def counts_of(processes: int, rows: int) -> list[int]:
    """After how many processes each row is: after every one, or every second, third, ...; the last
    row has all of them.
    """
    if rows <= 0:
        return []
    step = ceil(processes / rows)
    counts = list(range(step, processes + 1, step))
    if counts[-1] != processes:
        counts.append(processes)
    return counts


def axis_of(ratios: Sequence[float], cells: int) -> LogAxis:
    """Around the first processes. Its ends move while these come in, in steps, and never again."""
    first = [-ratio for ratio in ratios[:FEWEST]]
    low = min(first)
    high = max(first)
    spread = max(high - low, 0.01)
    if len(first) < _FEWEST_TO_FIT:
        spread = max(spread, _FIRST_SPREAD)
    if len(first) >= FEWEST and (interval := look(ratios, FEWEST)):
        low = min(low, log(interval.low))
        high = max(high, log(interval.high))
    if low < _NEAR_ONE and high > -_NEAR_ONE and spread > min(abs(low), abs(high)):
        low = min(low, 0.0)
        high = max(high, 0.0)
    step = 2.0 ** floor(log2(spread)) / 2
    low = floor((low - _ROOM * spread) / step) * step
    high = ceil((high + _ROOM * spread) / step) * step
    return LogAxis(exp(low), exp(high), cells)


def _why_no_ratio(run: LiveReport, comparison: Comparison | None) -> str:
    if comparison is None and not (run.report.under_way and len(run.variants) > 1):
        return "nothing is compared"
    return "no process has measured both so far"


def _label(value: float) -> str:
    return f"{value:g}x" if value < 1000 else f"{three_digits(value)}x"


def _draw_control(run: LiveReport, area: Area) -> None:
    """The last row: whether the baseline comes out the same as itself."""
    control, row = run.report.control, area.height - 1
    area.put(row, 0, "control", most=_LABEL)
    if control is None or control.speedup is None:
        area.put(row, _LABEL + 1, "the baseline against itself: not yet known")
        return
    text = f"the baseline against itself {interval(control.speedup)}: "
    if _LABEL + 1 + len(text) + len(control.verdict) > area.width:
        text = f"{interval(control.speedup)}: "
    area.put(row, _LABEL + 1, text)
    area.put(row, _LABEL + 1 + len(text), control.verdict, STYLES[control.verdict])


_ABOUT = (
    "Each dot is the speedup in one fresh process, the line the median of all so far. From eight "
    "processes on a row has the interval in which the true speedup lies, 99 times of 100; from "
    "four to seven it says how wide that will be at least. It narrows as processes come in; where "
    "it leaves the band around 1x there is a verdict. The control is the baseline against itself: "
    "it must come out the same."
)
NARROWING = Panel("confidence", _heading, _rows, _draw, _ABOUT)


def first_interval(done: Sequence[float]) -> str:
    """Return what the first interval holds at least, which reaches to the outermost of its
    processes, by those that are done; empty where there is one, or too few of them.
    """
    if not _FEWEST_TO_FIT <= len(done) < FEWEST:
        return ""
    return f"{span(exp(-max(done)), exp(-min(done)))} or wider"


def look(ratios: Sequence[float], units: int) -> Interval | None:
    """The speedup over the first so many processes; None where they are too few for an interval."""
    theta = correlated_interval(ratios[:units])
    return as_speedup(theta) if theta else None
