"""The table of a run: times and speedups with their intervals. The same one while it runs and when it has ended."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.analysis.comparison import Comparison
from gpulab.protocol.statuses import Status, Verdict
from gpulab.report.report import Control, RunReport, VariantReport
from gpulab.views.text import STYLES, Glyphs, plus_minus, seconds, span, times, with_star


def comparison_table(report: RunReport, glyphs: Glyphs) -> Table:
    """A row a variant, one more for each further comparison, and the control. Under way, verdicts are so far."""
    live = report.under_way
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=False)
    # Under way nothing jumps when a number comes in.
    table.add_column("variant", overflow="fold", min_width=7)
    table.add_column(f"time/{report.per}", justify="right", no_wrap=True, min_width=7 * live or None)
    table.add_column(glyphs("±"), justify="right", no_wrap=True, min_width=5 * live or None)
    if not report.functions:
        table.add_column("speedup", justify="right", no_wrap=True, min_width=8)
        table.add_column("99 % interval", justify="right", no_wrap=True, min_width=14 * live or None)
        least = (12 + report.quick) * live or None
        table.add_column("so far" if live else "verdict", no_wrap=True, min_width=least)
    else:
        table.add_column("", no_wrap=True)
    for index, variant in enumerate(report.variants):
        comparisons = [comparison for comparison in report.comparisons if comparison.variant == variant.name]
        timing = _timing(report, variant, glyphs)
        if report.functions:
            table.add_row(*timing, _status(report, variant))
            continue
        label = "baseline" if index == 0 else ""
        table.add_row(*timing, *_conclusion(report, variant, comparisons[:1], label, glyphs))
        for comparison in comparisons[1:]:
            against = Text(glyphs(f"  vs {comparison.against}"), style="dim")
            table.add_row(against, "", "", *_speedup(report, comparison, glyphs))
    if report.control and report.control.speedup is not None and not report.functions:
        table.add_row(*_control(report, report.control, glyphs))
    return table


def preliminary(report: RunReport, comparison: Comparison) -> str:
    """About how many times as fast, by the times of the first processes; empty where one of the two has none."""
    own, other = (report.variant(name).time_per_item for name in (comparison.variant, comparison.against))
    return f"about {times(other.median / own.median)}" if own and other and own.median else ""


def _timing(report: RunReport, variant: VariantReport, glyphs: Glyphs) -> list[RenderableType]:
    time = variant.time_per(report.per)
    return [
        Text(glyphs(variant.name)),
        glyphs(seconds(time.median)) if time else "",
        glyphs(plus_minus(time.low, time.high, time.median)) if time else "",
    ]


def _conclusion(
    report: RunReport, variant: VariantReport, comparisons: list[Comparison], label: str, glyphs: Glyphs
) -> list[RenderableType]:
    """Speedup, interval and verdict of a variant, or its status where it came to none."""
    if variant.status not in (Status.OK, Status.PENDING):
        # What failed late keeps its completed pairs, and no verdict stands beside them.
        kept = next((comparison for comparison in comparisons if comparison.speedup is not None), None)
        both = _speedup(report, kept, glyphs)[:2] if kept else ["", ""]
        return [*both, _status(report, variant)]
    if not comparisons:
        return [Text(label, style="dim"), "", _status(report, variant)]
    return _speedup(report, comparisons[0], glyphs)


def _status(report: RunReport, variant: VariantReport) -> Text:
    """What became of a variant where it is not a verdict."""
    measured = variant.status in (Status.OK, Status.PENDING)
    return Text(with_star("" if measured else variant.status, quick=report.quick), style=STYLES[variant.status])


def _speedup(report: RunReport, comparison: Comparison, glyphs: Glyphs) -> list[RenderableType]:
    verdict = Text(with_star(comparison.verdict, quick=report.quick), style=STYLES[comparison.verdict])
    if comparison.verdict == Verdict.INVALID:
        return ["", "", verdict]
    if report.under_way and comparison.speedup is None:
        return [Text(preliminary(report, comparison), style="dim"), "", ""]
    return [Text(times(comparison.speedup)), Text(glyphs(span(comparison.low, comparison.high))), verdict]


def _control(report: RunReport, control: Control, glyphs: Glyphs) -> list[RenderableType]:
    return [
        Text("control", style="dim"),
        "",
        "",
        Text(times(control.speedup), style="dim"),
        Text(glyphs(span(control.low, control.high)), style="dim"),
        Text(with_star(control.verdict, quick=report.quick), style=STYLES[control.verdict]),
    ]
