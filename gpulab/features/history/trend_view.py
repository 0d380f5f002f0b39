"""What `--history` prints: a line a scenario; or of one its runs, and of its speedups on one axis
which lie outside the range of those before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gpulab.catalog.view import ago, mark
from gpulab.core.units import plural, times
from gpulab.draw.blocks import Block, Text, columns_table
from gpulab.draw.blocks import Group as Parts
from gpulab.draw.canvas import packed
from gpulab.features.history.trend import Group, HistoryReport, ScenarioHistory, Trend
from gpulab.features.history.view import (
    HEADS,
    assignments,
    cells,
    count_of_runs,
    outside_words,
    trend_on_axis,
)
from gpulab.stats.comparison import FEWEST_TO_JUDGE

_MOST_NAME, _MOST_RUNS, _MOST_GROUPS = 32, 20, 3


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
    last = f"{count_of_runs(report.runs)} in {folder}"
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
    head = Text(f"{history.scenario}: {count_of_runs(history.runs)}", "bold")
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
