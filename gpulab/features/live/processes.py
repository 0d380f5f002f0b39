"""The medians of the processes: a strip a variant on one logarithmic axis of time, higher where
there are more of them.
"""

from __future__ import annotations

from collections import Counter

from gpulab.core.units import plus_minus
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, outwards, tick_seconds
from gpulab.draw.bars import tall_levels
from gpulab.draw.panel import Panel, Rows, bands, name_width, style_of
from gpulab.report.live import LiveReport

_SPREAD = 9
_LEAST_RATIO = 2.0


def _heading(run: LiveReport) -> tuple[str, str]:
    count = max((len(values) for values in run.detail.times_s.values()), default=0)
    per = f": time per {run.report.item}" if run.report.per == "item" else ""
    return f"process medians ({count}){per}", "±: half the interval of the time"


def _rows(run: LiveReport, width: int) -> Rows:
    if not run.report.compares:  # no block is timed
        return Rows(0, 0, 0, 1)
    count = max(2, len(run.variants))
    return Rows(1 + min(count, 3), 1 + count, 1 + 3 * count, count)


def _draw(run: LiveReport, area: Area) -> None:
    names = name_width(run, area.width)
    variants = run.variants
    scaled = {}
    for variant in variants:
        items = 1.0 if run.report.per == "item" else variant.items or 1.0
        scaled[variant.name] = [value * items for value in run.detail.times_s.get(variant.name, ())]
    every = [value for values in scaled.values() for value in values if value > 0]
    cells = area.width - names - 1 - _SPREAD - 1
    if not every or cells < 10:
        area.put(0, 0, "no process has ended yet")
        return
    low, high = outwards(min(every), max(every))
    if high / low < _LEAST_RATIO:
        high = low * _LEAST_RATIO
    axis = LogAxis(low, high, cells)
    for start, label in axis.ticks(tick_seconds):
        area.put(0, names + 1 + start, label)
    shown = variants[: area.height - 1]
    for variant, band in zip(shown, bands(len(shown), area.height - 1), strict=True):
        row = band.row + band.height  # counts stand on it
        style = style_of(variant.name, run.report.baseline)
        area.put(row, 0, variant.name, style, most=names)
        values = scaled[variant.name]
        if not values:
            continue
        counts = Counter(axis.inside(value) for value in values if value > 0)
        most = max(counts.values())
        for cell, count in counts.items():
            for above, mark in enumerate(tall_levels(count, most, band.height)):
                area.put(row - above, names + 1 + cell, mark, style)
        if time := variant.time_per(run.report.per):
            area.put_right(row, plus_minus(time))


_ABOUT = (
    "Every mark is the time of one fresh process, all variants on one logarithmic axis. Two "
    "humps of one variant are two states of the machine or of its memory, which is why a time is "
    "less certain than a ratio."
)
PROCESSES = Panel("process medians", _heading, _rows, _draw, _ABOUT, beside_variants=1)
