"""The interval of a speedup at 8, 16, 32, ... processes. Older rows stay, so that one sees it
narrow.
"""

from __future__ import annotations

from gpulab.core.units import span, three_digits
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around
from gpulab.draw.styles import STYLES
from gpulab.draw.table import first_and_last
from gpulab.features.live.panel import LiveRun, Panel, Rows
from gpulab.stats.statistics import FEWEST

_LABEL, _INTERVAL = 9, 16
_ROOM = 0.35


def _heading(run: LiveRun) -> tuple[str, str]:
    comparison = run.main_comparison
    if comparison is None:
        return "confidence", ""
    return f"confidence: {comparison.variant} over {comparison.against}, process by process", ""


def _rows(run: LiveRun, width: int) -> Rows:
    return Rows(4, 7)


def _draw(run: LiveRun, area: Area) -> None:
    _draw_intervals(run, area)
    _draw_control(run, area)


def _draw_intervals(run: LiveRun, area: Area) -> None:
    comparison = run.main_comparison
    if comparison is None or not run.looks(comparison):
        area.put(0, 0, _why_no_interval(run))
        return
    looks = run.looks(comparison)
    cells = max(10, area.width - _LABEL - _INTERVAL - 2)
    first = looks[0]
    ends = [first.low, first.high]
    if 0.8 < first.low < 1.25:
        ends.append(1.0)
    axis = LogAxis(*around(ends, _ROOM), cells)
    area.put(0, 0, "processes", most=_LABEL)
    for start, label in axis.ticks(_label):
        area.put(0, _LABEL + 1 + start, label)
    room = area.height - 2
    for row, look in enumerate(first_and_last(looks, room), 1):
        now = look is looks[-1]
        label = f"{look.units}{' now' * (now and run.report.under_way)}"
        area.put(row, max(0, _LABEL - len(label)), label)
        style = STYLES[comparison.verdict] if now else ""
        area.interval(row, _LABEL + 1, axis, (look.low, look.median, look.high), style)
        area.put(row, _LABEL + 1 + cells + 1, span(look.low, look.high), style)
    if run.predicted and 0 <= axis.cell(run.predicted) < cells:
        area.put(0, _LABEL + 1 + axis.cell(run.predicted), "?", "bold")


def _why_no_interval(run: LiveRun) -> str:
    if run.main_comparison is None and not (run.report.under_way and len(run.report.variants) > 1):
        return "nothing is compared"
    done = max((len(values) for values in run.detail.times_s.values()), default=0)
    return f"an interval needs {FEWEST} processes; {done} so far"


def _label(value: float) -> str:
    return f"{value:g}x" if value < 1000 else f"{three_digits(value)}x"


def _draw_control(run: LiveRun, area: Area) -> None:
    """The last row: whether the baseline comes out the same as itself."""
    control, row = run.report.control, area.height - 1
    area.put(row, 0, "control", most=_LABEL)
    if control is None or control.low is None:
        area.put(row, _LABEL + 1, "the baseline against itself: not yet known")
        return
    text = f"the baseline against itself {span(control.low, control.high)}: "
    if _LABEL + 1 + len(text) + len(control.verdict) > area.width:
        text = f"{span(control.low, control.high)}: "
    area.put(row, _LABEL + 1, text)
    area.put(row, _LABEL + 1 + len(text), control.verdict, STYLES[control.verdict])


_ABOUT = (
    "The interval in which the true speedup lies, 99 times of 100, over the first 8, 16, 32 "
    "processes and over all so far. It narrows as processes come in; where it leaves the band "
    "around 1x there is a verdict. The control is the baseline against itself: it must come out "
    "the same."
)
NARROWING = Panel("confidence", _heading, _rows, _draw, _ABOUT)
