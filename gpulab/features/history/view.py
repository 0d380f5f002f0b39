"""Runs of the past in the columns of a table, a trend on one axis, and what `--history` prints: a
line a scenario; or of one its runs, and its speedups where some lie outside the range of those
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gpulab.catalog.view import ago, best_comparison, mark
from gpulab.core.statuses import ExitCode
from gpulab.core.units import duration, interval, plural, seconds, span, times
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around
from gpulab.draw.blocks import Block, Text, columns_table
from gpulab.draw.blocks import Group as Parts
from gpulab.draw.canvas import Canvas, packed
from gpulab.stats.comparison import FEWEST_TO_JUDGE, Comparison
from gpulab.stats.verdicts import shown

if TYPE_CHECKING:
    from gpulab.core.values import ParamValue
    from gpulab.features.history.trend import Group, HistoryReport, Point, ScenarioHistory, Trend
    from gpulab.report.past import PastRun
    from gpulab.scenario import Scenario

_LABELS = 15
_MOST_NAME, _MOST_RUNS, _MOST_GROUPS = 32, 20, 3


def earlier_runs(comparisons: Sequence[Comparison]) -> str | None:
    """Such as: 6 earlier runs here: bmm 1.52 to 1.69. None where there are none."""
    found = [(each.variant, each.earlier) for each in comparisons if each.earlier]
    counts = {earlier.runs for _, earlier in found}
    ranges = [
        f"{variant} {times(past.low) if past.runs == 1 else span(past.low, past.high)}"
        for variant, past in found
    ]
    head = plural(max(counts), "earlier run") if len(counts) == 1 else "earlier runs"
    return f"{head} here: {', '.join(ranges)}" if ranges else None


HEADS = ("  when", "   best verdict", "interval, time", "device", "parameters")


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


def search_text(run: PastRun) -> str:
    """The text that the search looks in, in lower case."""
    outcome = mark(run)
    found = f"{run.outcome} {missed_threshold(run)} {outcome.verdict or outcome.text}"
    where = f"{run.device.name} {run.at} {run.host} {assignments(run.params)}"
    return f"{run.scenario} {run.title} {found} {where}".casefold()


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
        when = point.at[5:16].replace("T", " ")
        if point.at == at:
            area.put(row, 0, f"> {when}", "bold")
        else:
            area.put(row, 2, when)
        style = "yellow" if point.outside else ""
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
    if run.fail_below is None or run.exit_code not in (ExitCode.SLOWER, ExitCode.INCONCLUSIVE):
        return ""
    return f"< not shown to reach the required {times(run.fail_below)}"


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


def overview(report: HistoryReport, now: datetime, folder: str) -> Block:
    """A line a scenario: runs, age of the newest, the last result, and the newest speedup outside
    the range of those before.
    """
    table = columns_table()
    table.add_column("scenario", no_wrap=True, max_width=_MOST_NAME)
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("newest", justify="right", no_wrap=True)
    table.add_column("last result", no_wrap=True)
    table.add_column("speedup beside earlier runs")
    for each in report.scenarios:
        outcome = mark(each.last_result)
        result = Text(f"{outcome.text} {outcome.verdict}".strip(), outcome.style)
        words = _trend_words(each.groups[0]) if each.groups else ""
        table.add_row(each.scenario, str(each.runs), ago(each.newest, now), result, words)
    last = f"{plural(report.runs, 'run')} in {folder}"
    if report.unfinished:
        are = "has" if report.unfinished == 1 else "have"
        files = plural(report.unfinished, "other file")
        last += f"; {files} there {are} no end: going on, killed, or not readable"
    return Parts(*([table] if table.rows else []), Text(last))


def _trend_words(group: Group) -> Text:
    """Return the newest speedup outside the range of those before; where there is none, that of the
    best variant.
    """
    if (outside := _newest_outside(group)) is not None:
        return Text(_words(outside), "yellow")
    best = [trend for trend in group.trends if trend.variant == group.best] or group.trends
    return Text(_words(best[0])) if best else Text()


def _newest_outside(group: Group) -> Trend | None:
    """Return the trend of the newest such run; of several variants in it the best one's."""
    newest = ""
    found = None
    for trend in sorted(group.trends, key=lambda trend: trend.variant != group.best):
        point = trend.newest_outside
        if point is not None and point.at > newest:
            newest, found = point.at, trend
    return found


def scenario_view(
    history: ScenarioHistory, now: datetime, width: int, *, verbose: bool = False
) -> Block:
    """Its runs, the newest first, and its trends; with `verbose` all of them."""
    head = Text(f"{history.scenario}: {plural(history.runs, 'run')}", "bold")
    head.append(f"  {history.path}", "not bold dim")
    table = columns_table()
    for words in HEADS:
        table.add_column(words, no_wrap=True)
    shown = history.entries if verbose else history.entries[:_MOST_RUNS]
    for run in shown:
        table.add_row(*cells(run, now, assignments(run.params)))
    parts: list[Block] = [head, table]
    parts += _left_out(len(history.entries) - len(shown), "older run")
    groups = history.groups if verbose else history.groups[:_MOST_GROUPS]
    for group in [group for group in groups if group.trends]:
        parts += ["", *_group(group, width, verbose=verbose)]
    parts += _left_out(len(history.groups) - len(groups), "other device or set of parameters")
    if not any(group.trends for group in history.groups):
        parts += ["", "no run of full length has a speedup"]
    return Parts(*parts)


def _group(group: Group, width: int, *, verbose: bool) -> Iterator[Block]:
    about = [group.device.name, group.host, assignments(group.params)]
    yield Text(f"speedups on {', '.join(filter(None, about))}", "bold", overflow="fold")
    runs = f"{plural(group.runs, 'run')} from {group.first[:10]} to {group.last[:10]}"
    yield Text(runs, "dim")
    if (trend := _newest_outside(group)) is not None:
        rows = 1 + len(trend.points) + sum(point.outside is not None for point in trend.points)
        yield trend_on_axis(trend, group.last, width, rows if verbose else min(rows, _MOST_RUNS))
    yield from map(Text, packed([_words(trend) for trend in group.trends], " · ", width))


def _words(trend: Trend) -> str:
    """Such as: fused 1.40x on 01-25 outside 1.479 to 1.576: driver 570.86 → 580.159."""
    point = trend.newest_outside
    if point is not None:
        return f"{trend.variant} {times(point.speedup)} on {point.at[5:10]} {outside_words(point)}"
    if trend.runs <= FEWEST_TO_JUDGE:
        return f"{trend.variant}: {plural(trend.runs, 'run')}, too few"
    newest = times(trend.points[-1].speedup)
    return f"{trend.variant} {newest}, none of {plural(len(trend.points), 'run')} outside"


def _left_out(count: int, what: str) -> list[Block]:
    if count <= 0:
        return []
    return [Text(f"… {plural(count, what)}: --verbose", "dim")]
