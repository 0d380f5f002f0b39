"""The speedup in digits that one reads from the last row: only where a panel fills the screen."""

from __future__ import annotations

from math import exp
from statistics import median

from gpulab.core.units import interval, plural, seconds, times
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows
from gpulab.draw.styles import STYLES
from gpulab.features.live.activity import activity
from gpulab.features.live.times import TIMES
from gpulab.report.live import LiveReport
from gpulab.stats.comparison import Comparison
from gpulab.stats.statistics import FEWEST
from gpulab.stats.verdicts import shown

_DIGITS = {
    "0": ("████", "█  █", "█  █", "█  █", "████"),
    "1": ("  █ ", " ██ ", "  █ ", "  █ ", " ███"),
    "2": ("████", "   █", "████", "█   ", "████"),
    "3": ("████", "   █", " ███", "   █", "████"),
    "4": ("█  █", "█  █", "████", "   █", "   █"),
    "5": ("████", "█   ", "████", "   █", "████"),
    "6": ("████", "█   ", "████", "█  █", "████"),
    "7": ("████", "   █", "  █ ", " █  ", " █  "),
    "8": ("████", "█  █", "████", "█  █", "████"),
    "9": ("████", "█  █", "████", "   █", "████"),
    ".": ("  ", "  ", "  ", "██", "██"),
    ",": ("  ", "  ", "  ", " █", "█ "),
    "x": ("    ", "█  █", " ██ ", " ██ ", "█  █"),
    "µ": ("    ", "█  █", "█  █", "████", "█   "),
    "s": ("    ", " ███", " ██ ", "   █", "███ "),
    "m": ("     ", "████ ", "█ █ █", "█ █ █", "█ █ █"),
    "n": ("    ", "███ ", "█  █", "█  █", "█  █"),
    " ": ("  ", "  ", "  ", "  ", "  "),
}
_ROWS = 5


def _heading(run: LiveReport) -> tuple[str, str]:
    comparison = run.main_comparison
    left = run.report.scenario
    if comparison is not None and run.ratios(comparison):
        left = f"{comparison.variant} over {comparison.against}"
    return left, f"predicted {times(run.predicted)}" if run.predicted else ""


def _rows(run: LiveReport, width: int) -> Rows:
    return Rows(_ROWS + 4, _ROWS + 8, _ROWS + 8)


def _draw(run: LiveReport, area: Area) -> None:
    comparison = run.main_comparison
    text, words, style = _said(run, comparison)
    column = 4
    for shape in (_DIGITS.get(character, _DIGITS[" "]) for character in text):
        for line, cells in enumerate(shape):
            area.put(1 + line, column, cells, style)
        column += len(shape[0]) + 2
    row = 2 + _ROWS
    area.put(row, 4, words, f"bold {style}".strip())
    bars = area.part(row + 2, 4, area.width - 8, area.height - row - 2)
    TIMES.draw(run, bars)


def _said(run: LiveReport, comparison: Comparison | None) -> tuple[str, str, str]:
    """(what is drawn large, the words below it, their style)."""
    if comparison is not None and comparison.speedup is not None:
        found = shown(comparison)
        word = str(comparison.verdict)
        words = f"{word.upper()}{found.words.removeprefix(word)}   "
        words += f"{interval(comparison.speedup)}   (99 %)"
        return times(comparison.speedup), words, STYLES[comparison.verdict]
    if comparison is not None and (ratios := run.ratios(comparison)):
        words = f"the median of {plural(len(ratios), 'process', 'processes')}"
        return times(exp(-median(ratios))), f"{words}; an interval needs {FEWEST}", ""
    first = next(iter(run.report.timed), None)
    if first is None:
        return "", f"{activity(run.report.progress)}, {run.stage_s:.0f} s", ""
    variant, time = first
    return seconds(time.value), f"a step of {variant.name}; no speedup so far", ""


_ABOUT = "The speedup so far, large enough for the last row, with its interval."
NUMBER = Panel("speedup", _heading, _rows, _draw, _ABOUT)
