"""Guesses before a run, and beside what it measured after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from rich.console import RenderableType
from rich.text import Text

from gpulab.catalog.listing import ScenarioRow
from gpulab.catalog.view import best_comparison, title_without_name, variants_table
from gpulab.core.units import span, times
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis
from gpulab.draw.canvas import Canvas
from gpulab.features.history.report import PastComparison
from gpulab.features.predictions.report import LIMITS, Prediction, limit_right, promised
from gpulab.report.report import RunReport
from gpulab.stats.comparison import Comparison

_LEAST, _MOST = 0.25, 128.0
_ROWS = 4
_MOST_GUESSES = 200
_PROMISED, _MEASURED = "promised", "measured"


def guesses_of(text: str) -> list[float]:
    """The numbers that were typed, in their order: 4, 2.5x, 8. ValueError where a word is no number
    above zero.
    """
    words = text.replace(",", " ").split()[:_MOST_GUESSES]
    values = [float(word.lower().removesuffix("x")) for word in words]
    if not all(0 < value < 1e9 for value in values):
        raise ValueError(text)
    return values


def limit_of(text: str) -> str | None:
    """Which limit was typed, by how it begins; None where nothing was. ValueError where it begins
    none of them.
    """
    word = text.strip().lower()
    if not word:
        return None
    limits = [limit for limit in LIMITS if limit.startswith(word)]
    if len(limits) != 1:
        raise ValueError(text)
    return limits[0]


def question(row: ScenarioRow) -> list[RenderableType]:
    """What is to be guessed: the variants, and the question. The answer is the best variant's
    speedup.
    """
    name = Text(f"{row.name}: {title_without_name(row)}".removesuffix(": "), "bold")
    what = row.variants[1] if len(row.variants) == 2 else "the best of them"
    return [
        name,
        "",
        variants_table(row),
        "",
        Text(f"How many times as fast is {what}?", "bold"),
    ]


def axis_view(
    guesses: Sequence[float],
    *,
    width: int,
    promise: tuple[float, float] | None = None,
    measured: Comparison | PastComparison | None = None,
    rows: int = _ROWS,
) -> Text:
    """Guesses on a logarithmic axis, in a heap of `rows` where they are near; below it promise and
    measurement.
    """
    names = (_PROMISED, _MEASURED) if promise or measured else ()
    margin = max(map(len, names), default=0) + bool(names)
    canvas = Canvas(width, rows + 3 + len(names))
    area = Area(canvas, 0, 0, width, rows + 3 + len(names))
    interval = _interval(measured)
    ends = [*guesses, *(promise or ()), *(interval or ())]
    low, high = (
        min([_LEAST, *(end for end in ends if end)]),
        max([_MOST, *(end for end in ends if end)]),
    )
    axis = LogAxis(low, high, max(20 - margin, width - margin - 2))
    for cell, count in Counter(axis.inside(guess) for guess in guesses).items():
        for place in range(min(count, rows)):
            area.put(rows - 1 - place, margin + cell, "▲" if len(guesses) == 1 else "●", "bold")
    area.put(rows, margin, "├" + "─" * (axis.cells - 2) + "┤")
    for start, label in axis.ticks(lambda value: f"{value:g}x"):
        area.put(rows + 1, margin + start, label)
    for row, name in enumerate(names, rows + 2):
        area.put(row, 0, name)
    if promise:
        area.interval(
            rows + 2, margin, axis, (promise[0], (promise[0] * promise[1]) ** 0.5, promise[1])
        )
    elif names:
        area.put(rows + 2, margin, "no number", "dim")
    if interval:
        area.interval(rows + 3, margin, axis, interval)
    if len(guesses) > 1:
        middle, ends_of = times(median(guesses)), f"{times(min(guesses))} to {times(max(guesses))}"
        area.put(area.height - 1, 0, f"{len(guesses)} guesses, median {middle}, {ends_of}")
    return canvas.text()


def _interval(measured: Comparison | PastComparison | None) -> tuple[float, float, float] | None:
    """(low, median, high), where all of them are there."""
    if measured and measured.low and measured.speedup and measured.high:
        return measured.low, measured.speedup, measured.high
    return None


def record_line(answered: int, near: int) -> str:
    """How good one's guesses have been; nothing before the first."""
    return f"your record: {near} of {answered} within a factor of 2" if answered else ""


def outcome(report: RunReport, prediction: Prediction, *, width: int) -> list[Text]:
    """After a run: guess, promise and measurement on one axis, and in words. Empty where nothing
    came out.
    """
    comparison = best_comparison(report)
    if comparison is None or not comparison.speedup:
        return []
    guess, several = prediction.middle, len(prediction.speedups) > 1
    ratio = comparison.speedup / guess
    off = f"{times(ratio)} as much" if ratio >= 1 else f"{times(1 / ratio)} less"
    inside = (
        comparison.low is not None
        and comparison.high is not None
        and comparison.low <= guess <= comparison.high
    )
    said = "median prediction" if several else "predicted"
    measured = f"measured {times(comparison.speedup)} ({span(comparison.low, comparison.high)})"
    words = f"{said} {times(guess)}; {measured}: {'right, within the interval' if inside else off}"
    promise = promised(report.claim)
    rows = min(len(prediction.speedups), _ROWS)
    drawn = axis_view(
        prediction.speedups, width=width, promise=promise, measured=comparison, rows=rows
    )
    lines = [drawn, Text(words, "bold")]
    if (limit := limit_right(prediction, report)) is not None:
        bound, right = limit
        words = f"your prediction: {prediction.limit}-bound; measured: {bound}-bound"
        lines.append(Text(words, "bold green" if right else "bold"))
    return lines
