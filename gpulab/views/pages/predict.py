"""Guesses before a run, and beside what it measured after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from rich.console import RenderableType
from rich.text import Text

from gpulab.analysis.comparison import Comparison
from gpulab.protocol.listing import ScenarioRow
from gpulab.report.past_run import PastComparison
from gpulab.report.report import RunReport
from gpulab.views.lesson import variants_table
from gpulab.views.listing import best_comparison, title_beside_name
from gpulab.views.live.area import Area
from gpulab.views.live.axis import LogAxis
from gpulab.views.roofline.canvas import Canvas
from gpulab.views.text import Glyphs, span, times

_LEAST, _MOST = 0.25, 128.0
_ROWS = 4
_MOST_GUESSES = 200


def guesses_of(text: str) -> list[float]:
    """The numbers that were typed, in their order: 4, 2.5x, 8. ValueError where a word is no number above zero."""
    words = text.replace(",", " ").split()[:_MOST_GUESSES]
    values = [float(word.lower().removesuffix("x")) for word in words]
    if not all(0 < value < 1e9 for value in values):
        raise ValueError(text)
    return values


def question(row: ScenarioRow, glyphs: Glyphs) -> list[RenderableType]:
    """What is to be guessed: the variants, and the question. The answer is the best variant's speedup."""
    name = Text(glyphs(f"{row.name}: {title_beside_name(row)}".removesuffix(": ")), "bold")
    what = row.variants[1] if len(row.variants) == 2 else "the best of them"
    return [name, "", variants_table(row, glyphs), "", Text(glyphs(f"How many times as fast is {what}?"), "bold"), ""]


def axis_view(
    guesses: Sequence[float], glyphs: Glyphs, *, width: int, measured: Comparison | PastComparison | None = None
) -> Text:
    """Guesses on a logarithmic axis, one above the other where they are near; below it what was measured."""
    canvas = Canvas(width, _ROWS + 4, glyphs)
    area = Area(canvas, 0, 0, width, _ROWS + 4)
    ends = [*guesses, *([measured.low, measured.high] if measured and measured.low and measured.high else [])]
    axis = LogAxis(min([_LEAST, *ends]), max([_MOST, *ends]), max(20, width - 2))
    for cell, count in Counter(axis.inside(guess) for guess in guesses).items():
        for place in range(min(count, _ROWS)):
            area.put(_ROWS - 1 - place, cell, "▲" if len(guesses) == 1 else "●", "bold")
    area.put(_ROWS, 0, "├" + "─" * (axis.cells - 2) + "┤")
    for start, label in axis.ticks(lambda value: f"{value:g}x"):
        area.put(_ROWS + 1, start, label)
    if measured and measured.low and measured.high and measured.speedup:
        area.interval(_ROWS + 2, 0, axis, (measured.low, measured.speedup, measured.high))
    if len(guesses) > 1:
        words = (
            f"{len(guesses)} guesses, median {times(median(guesses))}, {times(min(guesses))} to {times(max(guesses))}"
        )
        area.put(_ROWS + 3, 0, words)
    return canvas.text()


def outcome(report: RunReport, guesses: Sequence[float], glyphs: Glyphs, *, width: int) -> list[Text]:
    """After a run: guess and measurement on one axis, and in words. Empty where nobody guessed, or nothing came out."""
    comparison = best_comparison(report)
    if not guesses or comparison is None or not comparison.speedup:
        return []
    guess = median(guesses)
    ratio = comparison.speedup / guess
    off = f"{times(ratio)} as much" if ratio >= 1 else f"{times(1 / ratio)} less"
    inside = comparison.low is not None and comparison.high is not None and comparison.low <= guess <= comparison.high
    said = "you said" if len(guesses) == 1 else "the median guess is"
    measured = f"it is {times(comparison.speedup)} ({span(comparison.low, comparison.high)})"
    words = f"{said} {times(guess)}; {measured}: {'right, within the interval' if inside else off}"
    return [axis_view(guesses, glyphs, width=width, measured=comparison), Text(glyphs(words), "bold")]
