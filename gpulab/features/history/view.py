"""Runs of the past in the columns of a table, and a trend drawn on one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gpulab.catalog.view import ago, best_comparison, mark
from gpulab.core.statuses import ExitCode
from gpulab.core.units import duration, interval, plural, seconds, span, times
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import Canvas
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import shown

if TYPE_CHECKING:
    from gpulab.core.values import ParamValue
    from gpulab.features.history.trend import Point, Trend
    from gpulab.report.past import PastRun
    from gpulab.scenario import Scenario

_LABELS = 15
_MISSED = {
    ExitCode.SLOWER: "below the required",
    ExitCode.INCONCLUSIVE: "not shown to reach the required",
}


def earlier_runs(comparisons: Sequence[Comparison]) -> str | None:
    """Such as: 6 earlier runs here: bmm 1.52 to 1.69. None where there are none."""
    counts = {comparison.earlier.runs for comparison in comparisons if comparison.earlier}
    if not counts:
        return None
    head = "earlier runs" if len(counts) > 1 else plural(max(counts), "earlier run")
    parts = []
    for comparison in comparisons:
        earlier = comparison.earlier
        if earlier is None:
            continue
        speedups = times(earlier.low) if earlier.runs == 1 else span(earlier.low, earlier.high)
        part = f"{comparison.variant} {speedups}"
        if len(counts) > 1:
            part += f" ({earlier.runs})"
        parts.append(part)
    return f"{head} here: {', '.join(parts)}"


HEADS = ("when", "   best verdict", "interval, time", "device", "parameters")


def cells(run: PastRun, now: datetime, params: str) -> tuple[Text, ...]:
    """Return what stands below the heads: the best speedup with its verdict and its interval; the
    shortest time where nothing is compared.
    """
    outcome, best = mark(run), best_comparison(run)
    figure, word = outcome.text, outcome.verdict
    if not word and figure.rstrip("*").endswith("?"):
        word = "inconclusive"
    elif not word:
        figure, word = "", figure
    device = run.device.name.removeprefix("NVIDIA ")
    value = seconds(run.fastest_s) if run.fastest_s else ""
    if best is not None:
        value = interval(best.speedup)
    result = Text(f"{figure:>7} {word}", outcome.style)
    if missed_threshold(run):
        result = Text().append(result).append(" <", "bold")
    return Text(f"{ago(run, now):>6}"), result, Text(value), Text(device), Text(params)


def differing(run: PastRun, scenario: Scenario) -> str:
    """The parameters of a run that differ from the defaults of its scenario, such as n=4096."""
    defaults = scenario.resolve(on_cpu=run.device.kind == "cpu", smoke=False, chosen={})
    names = [name for name, value in run.params.items() if value != defaults.get(name)]
    return assignments({name: run.params[name] for name in names})


def count_of_runs(count: int) -> str:
    """Such as 10,000 runs."""
    return f"{count:,} run{'s' * (count != 1)}"


def search_text(run: PastRun) -> str:
    """The text that the search looks in, in lower case."""
    words = (
        run.scenario,
        run.title,
        run.outcome,
        missed_threshold(run),
        mark(run).verdict or mark(run).text,
        run.device.name,
        run.at,
        run.host,
        assignments(run.params),
    )
    return " ".join(words).casefold()


def trend_on_axis(trend: Trend, at: str, width: int, height: int) -> Text:
    """Draw the speedups of the runs around the one of that time; below each outside the range of
    those before, what that range was, and what changed.
    """
    rows: list[tuple[Point, str]] = []
    for point in trend.points:
        rows.append((point, ""))
        if point.outside is not None:
            rows.append((point, outside_words(point)))
    room = max(0, height - 1)
    end = sum(point.at <= at for point, _ in rows) + room // 2
    shown_rows = rows[max(0, min(end, len(rows)) - room) :][:room]
    canvas = Canvas(width, height)
    if not shown_rows:
        return canvas.text()
    area = Area(canvas, 0, 0, width, height)
    ends = [end for point, _ in shown_rows for end in _interval(point)]
    axis = LogAxis(*around(ends, 0.2), max(10, width - _LABELS - 2))
    area.put(0, 0, trend.variant, most=_LABELS - 1)
    for start, label in axis.ticks(lambda value: f"{value:g}x"):
        area.put(0, _LABELS + start, label)
    for row, (point, words) in enumerate(shown_rows, 1):
        if words:
            area.put(row, 2, words, "yellow")
            continue
        style = "yellow" if point.outside else ""
        sign = ">" if point.at == at else " "
        area.put(row, 0, f"{sign} {point.at[5:16]}".replace("T", " "), "bold" * (sign == ">"))
        area.interval(row, _LABELS, axis, _interval(point), style)
    return canvas.text()


def _interval(point: Point) -> tuple[float, float, float]:
    return point.low or point.speedup, point.speedup, point.high or point.speedup


def outside_words(point: Point) -> str:
    """Such as: outside 1.490 to 1.510: driver 570.86 → 580.159."""
    if point.outside is None:
        return ""
    changed = ", ".join(f"{each.what} {each.before} → {each.after}" for each in point.changed)
    changed = changed or "same versions, power limit and source"
    return f"outside {span(point.outside.low, point.outside.high)}: {changed}"


def missed_threshold(run: PastRun) -> str:
    """Return what a run did not reach that had to reach a speedup (--fail-below); else empty."""
    if run.fail_below is None or run.exit_code not in _MISSED:
        return ""
    return f"< {_MISSED[run.exit_code]} {times(run.fail_below)}"


def facts(run: PastRun) -> str:
    """One line about the run under the cursor."""
    parts = [missed_threshold(run)]
    if best := best_comparison(run):
        parts.append(f"{best.variant} {times(best.speedup)} over {best.against}")
        parts.append(shown(best).bound or "")
    parts.append(assignments(run.params))
    parts.append(f"torch {run.environment.get('torch') or '?'}")
    parts += [duration(run.elapsed_s), plural(run.rounds, "round")]
    return " · ".join(part for part in parts if part)


def assignments(params: Mapping[str, ParamValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())
