"""Runs of the past, a line each, and the speedups of one scenario's runs on one axis."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gpulab.catalog.view import ago, best_comparison, mark
from gpulab.core.statuses import ExitCode
from gpulab.core.units import duration, interval, plural, seconds, span, times
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import Canvas, fit, wide
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import shown

if TYPE_CHECKING:
    from gpulab.core.values import ParamValue
    from gpulab.features.history.trend import Point
    from gpulab.report.past import PastComparison, PastRun
    from gpulab.scenario import Scenario


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


_LEAST_NAME, _MOST_NAME, _OTHER_CELLS = 8, 32, 59
"""Of the column of names; and what the other columns take, of the device its beginning."""
_WITH_PARAMETERS, _LEAST_DEVICE = 98, 10
"""Cells of a line from which on it has parameters; and what they leave to the device."""
_VENDOR = "NVIDIA "
_THRESHOLD = "<"
"""Of a run that was not shown to reach its required speedup."""
_MISSED = {
    ExitCode.SLOWER: "below the required",
    ExitCode.INCONCLUSIVE: "not shown to reach the required",
}
_ROOM = 0.2
_LABELS, _NARROW_LABELS, _NARROW = 24, 16, 80
"""Cells of the labels beside an axis, and below which width they are the fewer."""
_AROUND = 100
"""Runs on each side of the chosen one that are looked through for such with an interval."""


def name_width(longest: int, width: int) -> int:
    """Cells for the names, of which the longest takes so many, in a line of `width`."""
    return max(_LEAST_NAME, min(longest, _MOST_NAME, width - _OTHER_CELLS))


def columns(width: int, name: int) -> Text:
    """Return what stands in the columns of `line`; without `name` there is none of names."""
    lesson = f"{'lesson':<{name}} " if name else ""
    text = f"{'when':>6}  {lesson}{'best':>8} {'verdict':<12}  {'interval or time':<16} device"
    if width >= _WITH_PARAMETERS:
        text += ", parameters"
    return Text(fit(text, width), "bold", no_wrap=True, overflow="ellipsis")


def line(run: PastRun, now: datetime, width: int, name: int = 24, differ: str = "") -> Text:
    """Age, scenario, verdict and interval of the best speedup; or the shortest time where nothing
    is compared. `differ`: the parameters that differ from the defaults.
    """
    outcome = mark(run)
    best = best_comparison(run)
    figure = outcome.text
    word = outcome.verdict
    if not word and figure.rstrip("*").endswith("?"):
        word = "inconclusive"
    elif not word:
        word = figure
        figure = ""
    value = ""
    if best:
        value = interval(best.speedup)
    elif run.fastest_s:
        value = seconds(run.fastest_s)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{ago(run, now):>6}  ")
    if name:
        text.append(f"{cell(run.scenario, name)} ")
    text.append(f"{figure:>8} {word:<12}", outcome.style)
    text.append(f"{_THRESHOLD if missed_threshold(run) else ' '} ", "bold")
    text.append(f"{cell(value, 16)} ")
    room = width - text.cell_len
    if differ and width >= _WITH_PARAMETERS:
        differ = f"  {fit(differ, room - _LEAST_DEVICE - 2)}"
        room -= wide(differ)
    else:
        differ = ""
    device = run.device.name
    if wide(device) > room:
        device = device.removeprefix(_VENDOR)
    text.append(fit(device, max(0, room)))
    return text.append(differ)


def differing(run: PastRun, scenario: Scenario) -> str:
    """The parameters of a run that differ from the defaults of its scenario, such as n=4096."""
    defaults = scenario.resolve(on_cpu=run.device.kind == "cpu", smoke=False, chosen={})
    names = [name for name, value in run.params.items() if value != defaults.get(name)]
    return assignments({name: run.params[name] for name in names})


def count_of_runs(count: int) -> str:
    """Such as 10,000 runs."""
    return f"{count:,} run{'s' * (count != 1)}"


def nothing_listed(*, any_runs: bool) -> str:
    """Why the list is empty."""
    if any_runs:
        return "No run has all of these words. Esc leaves the search."
    return (
        "No run has ended on this machine yet: Esc goes back, r runs the lesson under the cursor."
    )


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


def others_on_one_axis(
    runs: Sequence[PastRun], chosen: PastRun, *, width: int, height: int
) -> Text:
    """The runs of the chosen one's scenario, which come the oldest first: those around it with
    their best speedups, and between them which lie outside the range of those before.
    """
    canvas = Canvas(width, height)
    area = Area(canvas, 0, 0, width, height)
    area.put(0, 0, "─" * width)
    area.put(
        0, 2, f" {chosen.scenario}: its {count_of_runs(len(runs))} here, the newest last ", "bold"
    )
    place = bisect_left(runs, chosen.at, key=lambda run: run.at)
    near = runs[max(0, place - _AROUND) : place + _AROUND]
    best = _best_variant([chosen, *reversed(near)])
    outside = _outside(near, best)
    both: list[tuple[PastRun, PastComparison | str]] = []
    for run in near:
        entries = [entry for entry in run.comparisons if entry.variant == best and entry.low]
        if entries and run.run_file in outside:
            both.append((run, outside[run.run_file]))
        both += [(run, entry) for entry in entries]
    rows = max(0, height - 2)
    end = sum(run.at <= chosen.at for run, _ in both) + rows // 2
    shown = both[max(0, min(end, len(both)) - rows) :][:rows]
    if not shown:
        area.put(1, 0, "no speedup with an interval")
        return canvas.text()
    newer = len(runs) - bisect_left(runs, shown[-1][0].at, key=lambda run: run.at) - 1
    if newer:
        area.put_right(0, f" {newer:,} newer ")
    entries = [entry for _, entry in shown if not isinstance(entry, str)]
    ends = [end for entry in entries for end in (entry.low, entry.high) if end]
    labels = _LABELS if width >= _NARROW else _NARROW_LABELS
    axis = LogAxis(*around(ends or [1.0], _ROOM), max(10, width - labels - 2))
    area.put(1, 0, best, most=labels)
    for start, label in axis.ticks(lambda value: f"{value:g}x"):
        area.put(1, labels + 1 + start, label)
    before = None
    for row, (run, entry) in enumerate(shown, 2):
        if isinstance(entry, str):
            area.put(row, 2, entry, "yellow")
            continue
        label = f"  {run.at[5:16]}".replace("T", " ")
        if run is before:  # of a ladder, with the rung below
            label = f"  vs {entry.against}"
        elif run is chosen:
            label = f">{label[1:]}"
        before = run
        area.put(row, 0, label, "bold" if run is chosen else "", most=labels)
        values = (entry.low or 1.0, entry.measured or 1.0, entry.high or 1.0)
        area.interval(row, labels + 1, axis, values)
    return canvas.text()


def _outside(runs: Sequence[PastRun], best: str) -> dict[str, str]:
    """By the run file: what is said of speedups of the best variant outside the range of those
    before.
    """
    # the first frame needs no history
    from gpulab.features.history.trend import groups

    trends = [trend for group in groups(runs) for trend in group.trends if trend.variant == best]
    points = [point for trend in trends for point in trend.points if point.outside]
    return {point.run_file: outside_words(point) for point in points}


def outside_words(point: Point) -> str:
    """Such as: outside 1.490 to 1.510: driver 570.86 → 580.159."""
    if point.outside is None:
        return ""
    outside = point.outside
    changed = ", ".join(f"{each.what} {each.before} → {each.after}" for each in point.changed)
    changed = changed or "same versions, power limit and source"
    return f"outside {span(outside.low, outside.high)}: {changed}"


def _best_variant(runs: Sequence[PastRun]) -> str:
    """The best variant of the first run whose best speedup has an interval."""
    for run in runs:
        best = best_comparison(run)
        if best and best.speedup and best.speedup.low:
            return best.variant
    return ""


def missed_threshold(run: PastRun) -> str:
    """Return what a run did not reach that had to reach a speedup (--fail-below); else empty."""
    if run.fail_below is None or run.exit_code not in _MISSED:
        return ""
    return f"{_THRESHOLD} {_MISSED[run.exit_code]} {times(run.fail_below)}"


def facts(run: PastRun) -> str:
    """One line about the run under the cursor."""
    parts = []
    if missed := missed_threshold(run):
        parts.append(missed)
    if best := best_comparison(run):
        speedup = f"{best.variant} {times(best.speedup)} over {best.against}"
        parts.append(", ".join(filter(None, (speedup, shown(best).bound))))
    if run.params:
        parts.append(assignments(run.params))
    parts.append(f"torch {run.environment.get('torch') or '?'}")
    parts += [duration(run.elapsed_s), plural(run.rounds, "round")]
    return " · ".join(parts)


def assignments(params: Mapping[str, ParamValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def cell(text: str, width: int) -> str:
    """The text in exactly so many cells."""
    text = fit(text, width)
    return text + " " * (width - wide(text))
