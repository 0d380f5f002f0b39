"""Predictions before a run, and beside what it measured after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log
from statistics import median

from msgspec.structs import replace

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.view import best_comparison, title_without_name, variants_table
from gpulab.core.estimate import value_of
from gpulab.core.findings import Finding
from gpulab.core.units import times, with_interval
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis
from gpulab.draw.blocks import Block, Fitted, Text
from gpulab.draw.canvas import Canvas
from gpulab.features import present
from gpulab.features.predictions.report import (
    LIMITS,
    Answered,
    Prediction,
    limit_right,
    near,
    promised,
    waits_for_memory,
)
from gpulab.report.past import PastComparison
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.stats.comparison import Comparison

_LEAST, _MOST = 0.25, 128.0
_ROWS = 4
_MOST_PREDICTIONS = 200
_PROMISED, _MEASURED = "claim", "measured"


def predictions_of(text: str) -> list[float]:
    """The typed numbers: 4, 2.5x, 8. ValueError where a word is no number above zero."""
    words = text.replace(",", " ").split()[:_MOST_PREDICTIONS]
    values = [float(word.lower().removesuffix("x")) for word in words]
    if not all(0 < value < 1e9 for value in values):
        raise ValueError(text)
    return values


def limit_of(text: str) -> str | None:
    """The limit with this prefix; None for an empty text. ValueError for none or several."""
    word = text.strip().lower()
    if not word:
        return None
    limits = [limit for limit in LIMITS if limit.startswith(word)]
    if len(limits) != 1:
        raise ValueError(text)
    return limits[0]


def question(row: ScenarioRow, skipped: Mapping[str, Finding]) -> list[Block]:
    """The variants that run here, and the question for the speedup of the best one."""
    name = Text(f"{row.name}: {title_without_name(row)}".removesuffix(": "), "bold")
    run = [place for place, variant in enumerate(row.variants) if variant not in skipped]
    here = replace(
        row,
        variants=tuple(row.variants[place] for place in run),
        summaries=tuple(row.summaries[place] for place in run),
    )
    left_out = [
        Text(f"{variant} is skipped here: {sentence(reason)}", "dim")
        for variant, reason in skipped.items()
    ]
    best = here.variants[1] if len(run) == 2 else "the best of them"
    text = Text(f"How many times as fast is {best}?", "bold")
    return [name, "", variants_table(here), *left_out, "", text]


def axis_view(
    predictions: Sequence[float],
    *,
    width: int,
    promise: tuple[float, float] | None = None,
    measured: Comparison | PastComparison | None = None,
    rows: int = _ROWS,
) -> Text:
    """Predictions on a logarithmic axis, in a heap of `rows` where they are near; below it promise
    and measurement.
    """
    names: tuple[str, ...] = ()
    margin = 0
    if promise or measured:
        names = (_PROMISED, _MEASURED)
        margin = max(map(len, names)) + 1
    canvas = Canvas(width, rows + 3 + len(names))
    area = Area(canvas, 0, 0, width, rows + 3 + len(names))
    interval = _interval(measured)
    ends = [end for end in (*predictions, *(promise or ()), *(interval or ())) if end]
    low = min([_LEAST, *ends])
    high = max([_MOST, *ends])
    axis = LogAxis(low, high, max(20 - margin, width - margin - 2))
    mark = "▲" if len(predictions) == 1 else "●"
    for cell, count in Counter(axis.inside(prediction) for prediction in predictions).items():
        for place in range(min(count, rows)):
            area.put(rows - 1 - place, margin + cell, mark, "bold")
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
    if len(predictions) > 1:
        between = f"{times(min(predictions))} to {times(max(predictions))}"
        text = f"{len(predictions)} predictions, median {times(median(predictions))}, {between}"
        area.put(area.height - 1, 0, text)
    return canvas.text()


def _interval(measured: Comparison | PastComparison | None) -> tuple[float, float, float] | None:
    """(low, median, high), where all of them are there."""
    if measured is None or measured.speedup is None or not measured.speedup.has_interval:
        return None
    low, high = measured.speedup.ends
    return low, measured.speedup.value, high


def guesses_line(prediction: Prediction) -> Text:
    """Return the guesses in one line, for a screen that plays the run that answers them."""
    speedups = sorted(prediction.speedups)
    middle = times(prediction.middle)
    words = f"your guess: {middle}"
    if len(speedups) > 1:
        listed = " ".join(f"{speedup:g}x" for speedup in speedups)
        words = f"{len(speedups)} guesses, median {middle}: {listed}"
    if prediction.limit:
        words += f"; limit of the baseline: {prediction.limit}"
    return Text(f" {words}", "bold cyan", no_wrap=True, overflow="ellipsis")


def record_line(answered: int, within: int) -> str:
    """Return how good the user's predictions have been; empty before the first."""
    if not answered:
        return ""
    return f"your record: {within} of {answered} within a factor of 2"


def outcome(report: RunReport, prediction: Prediction) -> list[Block]:
    """After a run: prediction, claim and measurement on one axis, and in words. Empty without a
    speedup.
    """
    comparison = best_comparison(report)
    if comparison is None or not comparison.speedup:
        return []
    speedups = prediction.speedups
    several = len(speedups) > 1
    word = "median prediction" if several else "predicted"
    measured = f"measured {with_interval(comparison.speedup)}"
    judgement = _judgement(prediction.middle, comparison)
    words = f"{word} {times(prediction.middle)}; {measured}: {judgement}"
    promise = promised(report.claim)
    rows = min(len(speedups), _ROWS)

    def drawn(width: int) -> Iterator[Block]:
        yield axis_view(speedups, width=width, promise=promise, measured=comparison, rows=rows)

    lines: list[Block] = [Fitted(drawn), Text(words, "bold")]
    if several:
        value = comparison.speedup.value
        best = min(speedups, key=lambda guess: abs(log(guess / value)))
        lines.append(Text(f"nearest: {best:g}"))
    cause = report.variant(report.baseline).cause if report.baseline else None
    if prediction.limit and cause and (roofline := present("roofline.view")):
        words = f"you predicted: limited by {prediction.limit}; measured: {roofline.bound(cause)}"
        right = limit_right(prediction, report)
        if right and prediction.limit == "memory" and waits_for_memory(report):
            words += ", waiting for memory accesses"
        words += ": not known whether that was right" if right is None else ""
        lines.append(Text(words, "bold green" if right else "bold"))
    return lines


def judged(answered: Answered) -> str:
    """A prediction of the past, such as 4.00x; measured 6.06x: 1.52x as much."""
    predicted, measured = answered.prediction.middle, answered.measured
    judgement = _judgement(predicted, measured)
    return f"{times(predicted)}; measured {times(measured.speedup)}: {judgement}"


def _judgement(predicted: float, comparison: Comparison | PastComparison) -> str:
    """Return how near a predicted speedup is to the measured one."""
    is_near = near(predicted, comparison.speedup) if comparison.speedup else False
    if is_near is None:
        return "too imprecise to tell"
    low, _, high = _interval(comparison) or (0.0, 0.0, 0.0)
    ratio = (value_of(comparison.speedup) or predicted) / predicted
    if low <= predicted <= high:
        return "right, within the interval"
    words = f"{times(ratio)} as much" if ratio >= 1 else f"{times(1 / ratio)} less"
    return f"{words}, within a factor of 2" if is_near else words
