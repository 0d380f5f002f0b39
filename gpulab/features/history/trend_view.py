"""What `--history` prints: a line a scenario; or of one its runs, and of its speedups on one axis
which lie outside the range of those before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from gpulab.catalog.view import ago, mark
from gpulab.core.units import plural, times
from gpulab.draw.blocks import Block, Text
from gpulab.draw.blocks import Group as Parts
from gpulab.draw.canvas import fit, packed, wide
from gpulab.features.history.trend import Group, HistoryReport, ScenarioHistory, Trend
from gpulab.features.history.view import (
    assignments,
    cell,
    columns,
    count_of_runs,
    line,
    others_on_one_axis,
    outside_words,
)
from gpulab.report.past import PastRun
from gpulab.stats.comparison import FEWEST_TO_JUDGE

_MOST_NAME, _MOST_RESULT = 32, 20
_RESULT = "last result"
_MOST_RUNS, _MOST_GROUPS = 20, 3


def overview(report: HistoryReport, now: datetime, folder: str) -> Block:
    """A line a scenario: runs, age of the newest, the last result, and the newest speedup outside
    the range of those before.
    """
    scenarios = report.scenarios
    outcomes = [mark(each.last_result) for each in scenarios]
    results = [f"{outcome.text} {outcome.verdict}".strip() for outcome in outcomes]
    name = min(_MOST_NAME, max((wide(each.scenario) for each in scenarios), default=0))
    room = min(_MOST_RESULT, max(map(wide, (_RESULT, *results))))
    lines = Text(no_wrap=True, overflow="ellipsis")
    head = f"{'scenario':<{name}}  {'runs':>5}  {'newest':>6}  {_RESULT:<{room}}"
    lines.append(f"{head}  speedup beside earlier runs", "bold")
    for each, outcome, result in zip(scenarios, outcomes, results, strict=True):
        lines.append(f"\n{cell(each.scenario, name)}  {each.runs:>5}  {ago(each.newest, now):>6}  ")
        words, style = trend_words(each.groups)
        lines.append(cell(result, room) if words else fit(result, room), outcome.style)
        lines.append(f"  {words}" if words else "", style)
    last = f"{count_of_runs(report.runs)} in {folder}"
    if report.unfinished:
        are = "has" if report.unfinished == 1 else "have"
        last += (
            f"; {plural(report.unfinished, 'other file')} there {are} no end: going on, killed, or "
            "not readable"
        )
    return Parts(*([lines] if scenarios else []), Text(last))


def trend_words(groups: Sequence[Group]) -> tuple[str, str]:
    """(what the newest runs on one device show, its style): the newest speedup outside the range
    of those before; where there is none, that of the best variant.
    """
    trends = groups[0].trends if groups else ()
    if not trends:
        return "", ""
    newest = [trend.newest_outside for trend in trends]
    outside = [(point.at, place) for place, point in enumerate(newest) if point is not None]
    if outside:
        _, place = max(outside)
        return _words(trends[place]), "yellow"
    best = [trend for trend in trends if trend.variant == groups[0].best] or trends
    return _words(best[0]), ""


def scenario_view(
    history: ScenarioHistory, now: datetime, width: int, *, verbose: bool = False
) -> Block:
    """Its runs, the newest first, and its trends; with `verbose` all of them."""
    head = Text(f"{history.scenario}: {count_of_runs(history.runs)}", "bold")
    head.append(f"  {history.path}", "not bold dim")
    parts: list[Block] = [head, columns(width, 0)]
    shown = history.entries if verbose else history.entries[:_MOST_RUNS]
    parts += [line(run, now, width, 0, assignments(run.params)) for run in shown]
    parts += _left_out(len(history.entries) - len(shown), "older run")
    groups = history.groups if verbose else history.groups[:_MOST_GROUPS]
    for group in [group for group in groups if group.trends]:
        parts += ["", *_group(group, history.entries, width, verbose=verbose)]
    parts += _left_out(len(history.groups) - len(groups), "other device or set of parameters")
    if not any(group.trends for group in history.groups):
        parts += [
            "",
            "no run of full length has a speedup, and times of separate runs are no pairs",
        ]
    return Parts(*parts)


def _group(
    group: Group, entries: Sequence[PastRun], width: int, *, verbose: bool
) -> Iterator[Block]:
    about = [group.device.name, group.host, assignments(group.params)]
    yield Text(f"speedups on {', '.join(filter(None, about))}", "bold", overflow="fold")
    runs = f"{plural(group.runs, 'run')} from {group.first[:10]} to {group.last[:10]}"
    yield Text(runs, "dim")
    points = [point for trend in group.trends for point in trend.points]
    files = {point.run_file for point in points}
    own = [run for run in reversed(entries) if run.run_file in files]
    outside = sum(point.outside is not None for point in points)
    if outside:
        rows = len(own) + outside + 2
        if not verbose:
            rows = min(rows, _MOST_RUNS)
        yield others_on_one_axis(own, own[-1], width=width, height=rows)
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
