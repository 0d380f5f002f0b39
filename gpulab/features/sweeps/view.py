"""A sweep: the same scenario at several values of one parameter, as a table and as a chart of time
per item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpulab.core.estimate import Estimate
from gpulab.core.statuses import Status
from gpulab.core.units import interval, plural, plus_minus, seconds, times, with_interval
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.draw.styles import OUTCOME_STYLES, QUICK, STYLES, with_star
from gpulab.features import present
from gpulab.features.sweeps.figure import curves_figure
from gpulab.report.commands import Sweep
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines, sentence_with_place
from gpulab.stats.verdicts import in_table

_NUMBER_WIDTHS = {"time/item": 7, "time/step": 7, "±": 5, "speedup": 6, "99 % interval": 13}
"""Names may be folded, numbers never."""


@dataclass(frozen=True)
class _Point:
    """One variant at one value."""

    value: str
    report: RunReport
    variant: VariantReport
    rank: str
    """best, ~best for a statistical tie with it, or empty."""

    @property
    def time(self) -> Estimate | None:
        """Seconds per item."""
        return self.variant.time_per_item


def sweep_view(sweep: Sweep, reports: Sequence[RunReport]) -> Block:
    """The runs of one scenario, in the order of the parameter's values. The best of each variant is
    marked.

    The mark is by the evidence of the final, and a line for each variant says what that is.
    """
    parameter = sweep.parameter
    points = []
    for report in reports:
        value = report.params.get(parameter)
        if value is None:
            continue
        for variant in report.variants:
            rank = _rank(sweep, variant.name, value)
            points.append(_Point(str(value), report, variant, rank))
    values = ", ".join(str(report.params.get(parameter, "")) for report in reports)
    head = f"{sweep.scenario} · {parameter} = {values}"
    parts: list[Block] = [Text(head, "bold"), "", _table(parameter, points), ""]
    timed = [report for report in reports if report.timed and parameter in report.params]
    if len({report.params[parameter] for report in timed}) > 1:
        parts += [curves_figure(timed, parameter), ""]
    parts += [Text(line, style) for line, style in _best(sweep, points)]
    memory = present("memory.view")
    if memory and (of_memory := memory.memory_over(parameter, reports)) is not None:
        parts += ["", of_memory]
    if any(report.quick for report in reports):
        parts.append(Text(QUICK, "dim"))
    reasons = {report.reason and sentence_with_place(report.reason) for report in reports}
    if len(reasons) == 1 and reports[0].reason is not None:
        reports = reports[:1]  # one for all
    for report in reports:
        place = f"{parameter}={report.params.get(parameter, '')}"
        if report.reason:
            text = f"{place}: {report.outcome}: {sentence_with_place(report.reason)}"
            parts.append(Text(text, OUTCOME_STYLES[report.outcome]))
        parts += [Text(f"{place}: {line}") for line in lines(report.explanations)]
        parts += [Text(f"{place}: {line}", "yellow") for line in lines(report.findings)]
    return Group(*parts)


def _best(sweep: Sweep, points: Sequence[_Point]) -> Iterator[tuple[str, str]]:
    """Lines with their styles: the best value of each variant."""
    parameter = sweep.parameter
    final = sweep.final
    for variant, value in sweep.best.items():
        among = sweep.best_among.get(variant, [value])
        count = sum(point.variant.name == variant and point.time is not None for point in points)
        named = " and ".join(f"{parameter}={other}" for other in among)
        if final is None or not sweep.paired.get(variant):
            medians = "by medians of separate runs, which no final compared"
            yield f"{variant}: {parameter}={value} {medians}", "yellow"
        elif len(among) == count:
            yield f"{variant}: no significant difference between values of {parameter}", "bold"
        elif len(among) > 1:
            yield f"{variant}: {named} are statistically tied", "bold"
        else:
            margin = _margin(sweep, variant, final)
            yield f"{variant}: {parameter}={value} is the best{margin}", "bold"
    if final is not None:
        compared = f"{plural(len(final.variants), 'point')} of one run in turn"
        if final.method.processes > 1:
            compared += f", {final.method.processes} processes"
        yield f"final: {compared}, times per {final.item}, paired", "dim"
        if final.reason:
            text = f"final: {final.outcome}: {sentence_with_place(final.reason)}"
            yield text, OUTCOME_STYLES[final.outcome]


def _margin(sweep: Sweep, variant: str, final: RunReport) -> str:
    """Return the speedup over the next, by the final, which compares all with the least median."""
    best = sweep.best[variant]
    reference, *others = [
        contender for contender in sweep.contenders if contender.variant == variant
    ]
    speedups = {}
    for contender in others:
        comparison = final.comparison(contender.name)
        if comparison and comparison.speedup and comparison.speedup.has_interval:
            speedups[contender.value] = comparison.speedup
    if best in speedups:
        other, speedup = reference.value, speedups[best]
    else:
        other, slower = max(speedups.items(), key=lambda item: item[1].value)
        speedup = slower.moved(lambda ratio: 1 / ratio)
    return f", {with_interval(speedup)} against {sweep.parameter}={other}"


def _rank(sweep: Sweep, variant: str, value: object) -> str:
    if sweep.best.get(variant) == value:
        return "best"
    if value in sweep.best_among.get(variant, ()):
        return "~best"
    return ""


def _table(parameter: str, points: Sequence[_Point]) -> Table:
    table = columns_table()
    per_item = any((point.variant.items or 1) != 1 for point in points)
    time_head = "time/item" if per_item else "time/step"
    for name in (parameter, "variant", time_head, "±", "speedup", "99 % interval", "verdict", ""):
        if name in _NUMBER_WIDTHS:
            width = _NUMBER_WIDTHS[name]
            table.add_column(name, justify="right", overflow="fold", min_width=width)
        else:
            table.add_column(name, overflow="fold", min_width=4)
    last = None
    for point in points:
        table.add_row("" if point.value == last else point.value, *_cells(point))
        last = point.value
    return table


def _cells(point: _Point) -> list[Block]:
    median = width = speedup = ends = ""
    if time := point.time:
        median = seconds(time.value)
        if time.low != time.high:
            width = plus_minus(time)
    status = point.variant.status
    word: str = "" if status == Status.OK else status
    style = STYLES[status]
    if comparison := point.report.comparison(point.variant.name):
        word = in_table(comparison)
        style = STYLES[comparison.verdict]
        ends = interval(comparison.speedup)
        if comparison.speedup:
            speedup = times(comparison.speedup)
    verdict = Text(with_star(word, quick=point.report.quick), style)
    name = point.variant.name
    return [name, median, width, speedup, ends, verdict, Text(point.rank, "bold")]
