"""A finished run in the order in which one asks: what came out, what limits it, whether it is so,
and the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.core.statuses import ExitCode, Status
from gpulab.core.units import span, times
from gpulab.draw.text import OUTCOME_STYLES, STYLES, with_star
from gpulab.features.alone.view import headline
from gpulab.features.checks.view import checks
from gpulab.features.course.view import questions_of
from gpulab.features.goodput.panel import PARTS
from gpulab.features.live.panel import LiveRun, name_width
from gpulab.features.live.screen import panel_view
from gpulab.features.live.times import TIMES
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import causes, reasons
from gpulab.report.results import below_table, failures, header, lesson_figure, tables
from gpulab.report.view import (
    against_earlier_runs,
    claims,
    comparison_table,
    failure_causes,
    figures,
    inconclusive,
    method,
    note_lines,
    required,
)
from gpulab.stats.comparison import Comparison

_VERDICT, _SPEEDUP = 12, 7


def result_page(
    run: LiveRun, guessed: Sequence[Text], run_file: str, *, width: int
) -> RenderableType:
    """`guessed`: what somebody said before it, beside what came out."""
    report = run.report
    parts: list[RenderableType] = [header(report), "", *_verdicts(run), ""]
    if report.compares and run.timed:
        parts += [panel_view(TIMES, run, width=width)]
    if (figure := lesson_figure(report)) is not None:
        parts += [_rule("what the lesson shows", width), figure]
    parts += guessed
    if any(variant.goodput for variant in report.variants):
        parts += [panel_view(PARTS, run, width=width)]
    roofline = roofline_of(report)
    points = [point for point in roofline.points if point.bound] if roofline else []
    limits = reasons(points, letters=False) + causes(report.variants)
    if limits:
        limits.rstrip()
        parts += [_rule("limits, and what to do", width), limits]
    parts += [_rule("trust", width), *_trust(run)]
    if asked := questions_of(report):
        parts += [_rule("questions of the course", width), *asked]
    parts += [_rule("tables", width)]
    if report.compares and run.timed:
        parts += [comparison_table(report), ""]
    parts += tables(report)
    if (listed := checks(report)) is not None:
        parts += [_rule("every check", width), listed]
    return Group(*parts, Text(f"run file: {run_file}", "dim"), failures(report))


def _rule(title: str, width: int) -> Text:
    text = Text("──", "dim", no_wrap=True)
    text.append(f" {title} ", "bold not dim")
    return text.append("─" * max(0, width - text.cell_len))


def _verdicts(run: LiveRun) -> list[Text]:
    """What failed first; then a line a comparison, its verdict in capitals."""
    report = run.report
    every = [(style, Text(line, style)) for line, style in failure_causes(report)]
    skipped = [text for style, text in every if style == STYLES[Status.SKIPPED]]
    causes = [text for style, text in every if style != STYLES[Status.SKIPPED]]
    if report.exit_code == ExitCode.MEASURED and not run.compared and not report.functions:
        outcome = with_star(report.outcome, quick=report.quick).upper()
        causes.append(Text(outcome, f"bold {OUTCOME_STYLES.get(report.outcome, '')}".strip()))
    names = name_width(run, most=24)
    causes += [Text(line, style) for line, style in required(report)]
    verdicts = [_verdict(comparison, names, quick=report.quick) for comparison in run.compared]
    sustained, reason = headline(report)
    why = [Text(reason, "dim")] if sustained else []
    return [*causes, *verdicts, *why, *skipped]


def _verdict(comparison: Comparison, names: int, *, quick: bool) -> Text:
    word = with_star(str(comparison.verdict), quick=quick).upper()
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{word:<{_VERDICT}} ", f"bold {STYLES[comparison.verdict]}")
    text.append(f"{comparison.variant:<{names}} ")
    if comparison.speedup is None:
        return text
    sustained = comparison.sustained
    if sustained and sustained.headline_reason:
        text.append(f"{times(sustained.speedup):>{_SPEEDUP}}", "bold")
        ends = span(sustained.low, sustained.high)
        return text.append(f" sustained  99 %: {ends}; interleaved {times(comparison.speedup)}")
    text.append(f"{times(comparison.speedup):>{_SPEEDUP}}", "bold")
    return text.append(f"  99 %: {span(comparison.low, comparison.high)}")


def _trust(run: LiveRun) -> list[Text]:
    report = run.report
    below = [*below_table(report), *claims(report), *against_earlier_runs(report), *figures(report)]
    below += [*inconclusive(report), *note_lines(report, verbose=True)]
    below += [(method(report), "dim")] if report.method.epochs else []
    return [Text(line, style) for line, style in below]
