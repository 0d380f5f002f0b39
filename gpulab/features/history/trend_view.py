"""What `--history` prints: a line a scenario; or of one its runs, and its levels on one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from gpulab.catalog.view import mark
from gpulab.core.units import plural, times
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around
from gpulab.draw.canvas import Canvas, fit, packed, wide
from gpulab.features.history.change_points import FEWEST_RUNS
from gpulab.features.history.trend import (
    Changed,
    Group,
    HistoryReport,
    ScenarioHistory,
    Stretch,
    Trend,
)
from gpulab.features.history.view import ago, assignments, cell, columns, count_of_runs, line, shift

_MOST_NAME, _MOST_RESULT = 32, 20
_RESULT = "last result"
_MOST_RUNS, _MOST_GROUPS, _MOST_STRETCHES = 20, 3, 6
_ENVIRONMENT = 2
"""Changes that are named in a line of the overview."""
_SINCE, _WORDS = 18, 30
"""Columns of a level's beginning, and of what is said of it."""
_ROOM = 0.1
_SAME = "same versions, power limit and source: something else changed"


def overview(report: HistoryReport, now: datetime, folder: str) -> RenderableType:
    """A line a scenario: runs, age of the newest, the last result, and the trend of its best
    variant.
    """
    scenarios = report.scenarios
    outcomes = [mark(each.last_result) for each in scenarios]
    results = [f"{outcome.text} {outcome.verdict}".strip() for outcome in outcomes]
    name = min(_MOST_NAME, max((wide(each.scenario) for each in scenarios), default=0))
    room = min(_MOST_RESULT, max(map(wide, (_RESULT, *results))))
    lines = Text(no_wrap=True, overflow="ellipsis")
    head = f"{'scenario':<{name}}  {'runs':>5}  {'newest':>6}  {_RESULT:<{room}}"
    lines.append(f"{head}  trend of the speedup", "bold")
    for each, outcome, result in zip(scenarios, outcomes, results, strict=True):
        lines.append(f"\n{cell(each.scenario, name)}  {each.runs:>5}  {ago(each.newest, now):>6}  ")
        words, style = trend_words(each.groups, now)
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


def trend_words(groups: Sequence[Group], now: datetime) -> tuple[str, str]:
    """(what the newest runs on one device show, its style), of the variant that changed most; of
    none that did, of the best.
    """
    if not groups:
        return "", ""
    group = groups[0]
    changed = [trend for trend in group.trends if trend.newest_level.differs]
    if changed:
        trend = max(changed, key=lambda trend: _size(trend.newest_level))
        newest = trend.newest_level
        since = _day(newest.since)
        if since.startswith(f"{now.year}-"):
            since = since[5:]
        if newest.changed:
            since = _named(newest.changed)
        words = f"{trend.variant} {shift(newest)} since {since}"
        return words, "" if newest.changed else _style(newest)
    named = [trend for trend in group.trends if trend.variant == group.best]
    for trend in named or group.trends[:1]:
        if trend.runs >= FEWEST_RUNS:
            return _steady(trend), ""
    return "", ""


def scenario_view(
    history: ScenarioHistory, now: datetime, width: int, *, verbose: bool = False
) -> RenderableType:
    """Its runs, the newest first, and its trends; with `verbose` all of them."""
    head = Text(f"{history.scenario}: {count_of_runs(history.runs)}", "bold")
    head.append(f"  {history.path}", "not bold dim")
    parts: list[RenderableType] = [head, columns(width, 0)]
    shown = history.entries if verbose else history.entries[:_MOST_RUNS]
    parts += [line(run, now, width, 0, assignments(run.params)) for run in shown]
    parts += _left_out(len(history.entries) - len(shown), "older run")
    groups = history.groups if verbose else history.groups[:_MOST_GROUPS]
    for group in [group for group in groups if group.trends]:
        parts += ["", _group(group, width, verbose=verbose)]
    parts += _left_out(len(history.groups) - len(groups), "other device or set of parameters")
    if not any(group.trends for group in history.groups):
        parts += [
            "",
            "no trend: no run of full length has a speedup with an interval, and times of "
            "separate runs are no pairs",
        ]
    return Parts(*parts)


def _group(group: Group, width: int, *, verbose: bool) -> RenderableType:
    about = [group.device.name, group.host, assignments(group.params)]
    title = f"speedups on {', '.join(part for part in about if part)}"
    runs = f"{plural(group.runs, 'run')} from {_day(group.first)} to {_day(group.last)}"
    parts: list[RenderableType] = [Text(title, "bold", overflow="fold"), Text(runs, "dim")]
    steady = [trend for trend in group.trends if len(trend.stretches) == 1]
    for trend in group.trends:
        if trend not in steady:
            parts.append(_on_one_axis(trend, width, verbose=verbose))
    words = [f"{trend.variant} {_steady(trend)}" for trend in steady]
    parts += [Text(row) for row in packed(words, " · ", width)]
    return Parts(*parts)


def _on_one_axis(trend: Trend, width: int, *, verbose: bool) -> Text:
    """A row for each level, the newest last, and below it what changed there."""
    stretches = trend.stretches if verbose else trend.stretches[-_MOST_STRETCHES:]
    rows = list(_rows(stretches))
    canvas = Canvas(width, len(rows) + 1)
    area = Area(canvas, 0, 0, width, len(rows) + 1)
    ends = [end for each in stretches for end in (each.low, each.speedup, each.high) if end]
    axis = LogAxis(*around(ends, _ROOM), max(10, width - _SINCE - _WORDS))
    for start, label in axis.ticks(lambda value: f"{value:g}x"):
        area.put(0, _SINCE + start, label)
    area.put(0, 0, f"{trend.variant} over {trend.against}", most=_SINCE - 1)
    for number, (stretch, words) in enumerate(rows, 1):
        if words is not None:
            area.put(number, 2, words, "dim" if stretch.changed else _style(stretch))
            continue
        area.put(number, 0, _minute(stretch.since))
        values = stretch.low or stretch.speedup, stretch.speedup, stretch.high or stretch.speedup
        area.interval(number, _SINCE, axis, values)
        area.put(number, width - _WORDS + 1, f"{times(stretch.speedup):>6} {_verdict(stretch)}")
    text = canvas.text()
    left = len(trend.stretches) - len(stretches)
    if left:
        text.append(f"\n… {plural(left, 'earlier level')}: --verbose", "dim")
    return text


def _rows(stretches: Sequence[Stretch]) -> Iterator[tuple[Stretch, str | None]]:
    """A row of its own, None, and below it one that says why."""
    for stretch in stretches:
        if stretch.changed:
            yield stretch, _changes(stretch.changed)
        elif stretch.ratio is not None:
            yield stretch, _SAME
        yield stretch, None


def _changes(changed: Sequence[Changed]) -> str:
    return ", ".join(f"{each.what} {each.before} → {each.after}" for each in changed)


def _verdict(stretch: Stretch) -> str:
    runs = plural(stretch.runs, "run")
    if stretch.ratio is None:
        return runs
    if stretch.differs is None:
        return f"{runs}: too few"
    if not stretch.differs:
        return f"{runs}, no change"
    return f"{runs}, {shift(stretch)}"


def _size(stretch: Stretch) -> float:
    ratio = stretch.ratio or 1.0
    return max(ratio, 1 / ratio)


def _style(stretch: Stretch) -> str:
    return "green" if (stretch.ratio or 1.0) > 1 else "yellow"


def _steady(trend: Trend) -> str:
    newest = trend.newest_level
    if newest.runs < FEWEST_RUNS:
        since = f" since {_named(newest.changed)}" if newest.changed else ""
        return f"{plural(newest.runs, 'run')}{since}: too few"
    return f"{times(trend.stretches[-1].speedup)}, no change in {plural(trend.runs, 'run')}"


def _named(changed: Sequence[Changed]) -> str:
    """Such as driver 580.2, torch 2.11."""
    names = [f"{each.what} {each.after}" for each in changed[:_ENVIRONMENT]]
    more = len(changed) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _left_out(count: int, what: str) -> list[RenderableType]:
    if count <= 0:
        return []
    return [Text(f"… {plural(count, what)}: --verbose", "dim")]


def _day(at: str) -> str:
    return at[:10]


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
