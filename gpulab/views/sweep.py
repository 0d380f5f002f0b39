"""A sweep: the same scenario at several values of one parameter, as a table and as a chart of time per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.result import RunResult, Sweep, VariantResult
from gpulab.views.text import QUICK, STYLES, Glyphs, marked, plus_minus, seconds, span, times

_LOG_FROM = 5.0
"""Times that differ by more than this factor are drawn on a logarithmic axis."""


@dataclass(frozen=True)
class _Point:
    value: str
    run: RunResult
    variant: VariantResult
    best: bool

    def near(self, points: Sequence[_Point]) -> bool:
        """Whether its interval meets that of its variant's best, so that the two cannot be told apart."""
        best = next((one.time for one in points if one.best and one.variant.name == self.variant.name), None)
        return bool(best and self.time and self.time[1] <= best[2])

    @property
    def time(self) -> tuple[float, float, float] | None:
        """Seconds per item: median, low, high."""
        of, items = self.variant.time_s, self.variant.items or 1.0
        if of is None:
            return None
        low, high = (of.median if one is None else one for one in (of.low, of.high))
        return of.median / items, low / items, high / items


def sweep(of: Sweep, runs: Sequence[RunResult], glyphs: Glyphs, width: int = 80) -> RenderableType:
    """The runs of one scenario, in the order of the parameter's values. The best of each variant is marked."""
    parameter = of.parameter
    points = [
        _Point(str(value), run, one, of.best.get(one.name) == value)
        for run in runs
        if (value := run.params.get(parameter)) is not None
        for one in run.variants
    ]
    values = ", ".join(str(run.params.get(parameter, "")) for run in runs)
    head = f"{of.scenario} · {parameter} = {values}"
    parts: list[RenderableType] = [Text(glyphs(head), "bold"), "", _table(parameter, points, glyphs), ""]
    if any(point.time for point in points):
        parts += [_chart(parameter, points, glyphs, width), ""]
    if any(run.quick for run in runs):
        parts.append(Text(QUICK, "dim"))
    reasons = [run.reason for run in runs]
    for run in runs[:1] if reasons[0] and len(set(reasons)) == 1 else runs:
        where = f"{parameter}={run.params.get(parameter, '')}"
        if run.reason:
            parts.append(Text(glyphs(f"{where}: {run.outcome}: {run.reason}"), STYLES.get(run.outcome, "bold red")))
        parts += [Text(glyphs(f"{where}: {warning}"), "yellow") for warning in run.warnings]
    return Group(*parts)


def _table(parameter: str, points: Sequence[_Point], glyphs: Glyphs) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    numbers = {"time/item": 7, "time/step": 7, "±": 5, "speedup": 6, "99 % interval": 13}
    timed = "time/item" if any((point.variant.items or 1) != 1 for point in points) else "time/step"
    for name in (parameter, "variant", timed, "±", "speedup", "99 % interval", "verdict", ""):
        width = numbers.get(name)  # names may be folded, numbers never
        table.add_column(glyphs(name), justify="right" if width else "left", overflow="fold", min_width=width or 4)
    last = None
    for point in points:
        time = point.time
        mine = next((one for one in point.run.comparisons if one.variant == point.variant.name), None)
        verdict = mine.verdict if mine else "" if point.variant.status == "ok" else point.variant.status
        told = glyphs(plus_minus(time[1], time[2], time[0])) if time and time[2] > time[1] else ""
        table.add_row(
            "" if point.value == last else glyphs(point.value),
            glyphs(point.variant.name),
            glyphs(seconds(time[0])) if time else "",
            told,
            times(mine.speedup) if mine and mine.speedup else "",
            glyphs(span(mine.low, mine.high)) if mine else "",
            Text(marked(verdict, quick=point.run.quick), STYLES.get(verdict, "")),
            Text("best" if point.best else "~best" if point.near(points) else "", "bold"),
        )
        last = point.value
    return table


def _chart(parameter: str, points: Sequence[_Point], glyphs: Glyphs, width: int) -> Text:
    """A line a point: its interval and its median on one axis, which all variants share."""
    drawn = [point for point in points if point.time]
    low = min(point.time[1] for point in drawn if point.time)
    high = max(point.time[2] for point in drawn if point.time)
    logarithmic = low > 0 and high / low > _LOG_FROM
    start = log(low) if logarithmic else 0.0
    end = log(high) if logarithmic else high
    labels = {id(point): f"{point.variant.name} {parameter}={point.value}" for point in drawn}
    margin = max(map(len, labels.values())) + 1
    cells = max(20, width - margin - 16)

    def at(value: float) -> int:
        place = ((log(value) if logarithmic else value) - start) / ((end - start) or 1.0)
        return round(place * (cells - 1))

    text = Text(no_wrap=True)
    scale = "logarithmic" if logarithmic else "from 0"
    text.append(glyphs(f"time per item, {scale}, with its 99 % interval\n"), "dim")
    for name in dict.fromkeys(point.variant.name for point in drawn):
        for point in drawn:
            if point.variant.name != name or point.time is None:
                continue
            median, lower, upper = (at(one) for one in point.time)
            row = [" "] * cells
            row[lower : upper + 1] = "─" * (upper + 1 - lower)
            row[median] = "●"
            text.append(glyphs(f"{labels[id(point)]:<{margin}}"))
            text.append(glyphs("".join(row)), "bold" if point.best else "")
            text.append(glyphs(f"{seconds(point.time[0]):>9}{' best' if point.best else ''}\n"))
    left, right = seconds(low if logarithmic else 0.0), seconds(high)
    text.append(glyphs(f"{'':<{margin}}{left}{right:>{max(1, cells - len(left))}}"), "dim")
    return text
