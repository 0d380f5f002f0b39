"""The result of a run as a person reads it, on a terminal and on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpulab.core.statuses import ExitCode, FailureKind, Shows, Status, Verdict
from gpulab.core.text import without_boilerplate
from gpulab.core.units import plural, span, times
from gpulab.draw.blocks import Block, Group, Text
from gpulab.draw.styles import STYLES, with_star
from gpulab.draw.table import rows_table
from gpulab.features import views
from gpulab.features.checks.findings import (
    state_diverges,
    state_not_named,
    state_not_restored,
)
from gpulab.features.checks.view import checks, grades
from gpulab.report.feature import Section
from gpulab.report.live import LiveRun
from gpulab.report.report import RunReport
from gpulab.show.limits import limits
from gpulab.show.parts import TABLES, panel, part, tables_of
from gpulab.show.program_result import program_result
from gpulab.show.view import (
    Line,
    against_earlier_runs,
    bounds,
    claims,
    clocks,
    comparison_table,
    failure_causes,
    figures,
    method,
    note_lines,
    outcome_words,
    required,
    short_run,
)
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import shown

_LAST_LINES = 10
_VERDICT, _SPEEDUP, _NAME = 12, 7, 24
_TWO_COLUMNS, _FEWEST_RIGHT, _MOST_RIGHT = 106, 46, 80
"""Columns from which on the processes are shown beside the result, and how many they have."""
_MOST_PROCESSES, _AROUND_PROCESSES, _ROWS_OF_HISTOGRAM = 24, 4, 4


@dataclass(frozen=True)
class OnScreen:
    """Additional parts of a result on a screen: panels of the run, `width` columns wide, the
    prediction, and the path of its file.
    """

    run: LiveRun
    width: int
    run_file: str
    predicted: Sequence[Text] = ()


def result(
    report: RunReport,
    *,
    screen: OnScreen | None = None,
    with_operations: bool = True,
    together: RunReport | None = None,
) -> Block:
    """A finished run with all notes, tables and checks: outcome, limits, trust, then the details.

    Without a screen the roofline shows the limits. Without operations: somebody asked for a table
    of their own. `together`: the run of all fixes that gained in this one.
    """
    if report.get("program") is not None:
        return program_result(report, run_file=screen.run_file if screen else "")
    if screen is not None and screen.width >= _TWO_COLUMNS:
        return _beside_processes(report, screen, together)
    figure = lesson_figure(report)
    every_check: list[Block] = []
    if (listed := checks(report)) is not None:
        every_check = [listed]
    table: list[Block] = []
    if report.compares and report.timed:
        table = [comparison_table(report), ""]
    trust = _lines(trust_lines(report))
    if screen is None:
        parts = [header(report), "", *outcome(report), *_derived(report, together), *table]
        if figure is not None:
            parts += [figure, ""]
        for section in (trust, tables(report, with_operations=with_operations), every_check):
            parts += section
            if section and section[-1] != "":
                parts.append("")
        return Group(*parts[:-1])
    parts = [header(report), "", *outcome(report, report.first_comparisons)]
    parts += _derived(report, together)
    parts += _panels(report, screen, figure)
    sections = {
        "trust": trust,
        "questions of the course": part("course.view:questions_of", report, screen.width),
        "tables": [*table, *tables(report)],
        "every check": every_check,
    }
    for title, section in sections.items():
        if section:
            parts += [_rule(title, screen.width), *section]
    return Group(*parts, Text(f"run file: {screen.run_file}", "dim"), failures(report))


def _derived(report: RunReport, together: RunReport | None) -> list[Block]:
    """What came out of a run that tries something."""
    parts: list[Block] = []
    for table in tables_of(report, views(Section.TRIED), together):
        parts += [table, ""]
    return parts


def _beside_processes(report: RunReport, screen: OnScreen, together: RunReport | None) -> Block:
    """The result, and at its right the speedups and times of the processes that it comes from."""
    run = screen.run
    right = min(max(screen.width * 2 // 5, _FEWEST_RIGHT), _MOST_RIGHT)
    left = screen.width - right - 2
    narrowed = replace(screen, width=min(left, _TWO_COLUMNS - 1))
    narrow = result(report, screen=narrowed, together=together)
    panels = []
    comparison = run.main_comparison
    if comparison is not None and (ratios := run.ratios(comparison)):
        height = min(len(ratios), _MOST_PROCESSES) + _AROUND_PROCESSES + bool(run.predicted)
        panels.append(panel("live.narrowing:NARROWING", run, width=right, height=height))
    if any(run.detail.times_s.values()):
        height = 2 + _ROWS_OF_HISTOGRAM * len(run.variants)
        panels.append(panel("live.processes:PROCESSES", run, width=right, height=height))
    panels = [drawn for drawn in panels if drawn is not None]
    if not panels:
        return narrow
    columns = rows_table()
    columns.add_column(width=left)
    columns.add_column(width=right, no_wrap=True)
    columns.add_row(narrow, Group(*panels))
    return columns


def _panels(report: RunReport, screen: OnScreen, figure: Block | None) -> list[Block]:
    """What a screen shows between the outcome and the other sections."""
    run = screen.run
    width = screen.width
    parts: list[Block] = []
    if report.compares and report.timed:
        parts += _drawn("live.times:TIMES", run, width)
    if figure is not None:
        parts += [_rule("what the lesson shows", width), figure]
    parts += screen.predicted
    if any(variant.goodput for variant in report.variants):
        parts += _drawn("goodput.panel:PARTS", run, width)
    if limited := limits(report.variants):
        parts += [_rule("limits, and what to do", width), limited]
    return parts


def _drawn(place: str, run: LiveRun, width: int) -> list[Block]:
    drawn = panel(place, run, width=width)
    return [] if drawn is None else [drawn]


def _rule(title: str, width: int) -> Text:
    text = Text("──", "dim", no_wrap=True)
    text.append(f" {title} ", "bold not dim")
    return text.append("─" * max(0, width - text.cell_len))


def outcome(report: RunReport, compared: Sequence[Comparison] = ()) -> list[Block]:
    """Failures first; then a line for each of these comparisons, its verdict in capitals."""
    causes = failure_causes(report)
    skipped = [line for line in causes if line[1] == STYLES[Status.SKIPPED]]
    lines = [line for line in causes if line not in skipped]
    if report.exit_code == ExitCode.MEASURED and (report.smoke or not report.variants):
        words = outcome_words(report)
        lines.append((words if report.smoke else words.upper(), "bold"))
    compared = compared if report.has_speedups else ()
    names = max((len(comparison.variant) for comparison in compared), default=0)
    verdicts = [_verdict(entry, min(names, _NAME), quick=report.quick) for entry in compared]
    sustained, reason = part("alone.view:headline", report) or ("", "")
    below: list[Line] = []
    if sustained and not compared:
        below.append((sustained, "bold"))
    if sustained:
        below.append((reason, "dim"))
    parts = [*_lines([*lines, *required(report)]), *verdicts, *_lines([*below, *skipped])]
    if parts:
        parts.append("")
    return parts


def _lines(lines: Sequence[Line]) -> list[Block]:
    return [Text(line, style) for line, style in lines]


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
    text.append(f"  99 %: {span(comparison.low, comparison.high)}")
    found = shown(comparison)
    return text.append(found.words.removeprefix(comparison.verdict))


def trust_lines(report: RunReport) -> list[Line]:
    """Below the table: grades and claims, what explains and weakens the result, how it was
    measured.
    """
    lines = [*below_table(report), *claims(report), *against_earlier_runs(report), *figures(report)]
    lines += [*bounds(report), *note_lines(report)]
    if report.method.epochs:
        lines.append((method(report), "dim"))
    return lines


def lesson_figure(report: RunReport) -> Block | None:
    """What the scenario shows other than speedups: first steps, clocks, or memory."""
    if report.shows == Shows.CLOCKS:
        return clocks(report)
    figures = [view for view in views(*Section) if view.lesson == report.shows]
    return next(tables_of(report, figures), None)


def tables(report: RunReport, *, with_operations: bool = True) -> list[Block]:
    """Tables of memory, tuning, kernels, solo runs, parts of a step, operations."""
    parts: list[Block] = []
    if (found := part("findings.view:advice_of", report.variants)) is not None:
        parts += [found, ""]
    sections = [section for section in TABLES if with_operations or section != Section.OPERATIONS]
    # the lesson's figure stands above
    others = [view for view in views(*sections) if view.lesson != report.shows]
    for table in tables_of(report, others):
        parts += [table, ""]
    return parts


def failures(report: RunReport) -> Text:
    """The tracebacks of a failed run, and the last lines that the scenario printed."""
    text = Text()
    tracebacks = dict.fromkeys(
        without_boilerplate(failure.traceback).rstrip()
        for failure in report.failures
        if failure.traceback and failure.kind not in (FailureKind.CANCELLED, FailureKind.TIMEOUT)
    )
    for traceback in tracebacks:
        text.append(traceback + "\n", "dim")
    printed = [*report.log.head, *report.log.tail][-_LAST_LINES:]
    cancelled = any(failure.kind == FailureKind.CANCELLED for failure in report.failures)
    if report.failures and printed and not cancelled:
        text.append("last output lines:\n" + "".join(f"  {line}\n" for line in printed), "dim")
    return text


def header(report: RunReport) -> Text:
    """What ran, on what, with which parameters."""
    text = Text(report.scenario, style="bold")
    if report.title and report.title != report.scenario:
        text.append(f" · {report.title}")
    facts = []
    if report.device and report.on_gpu:
        facts.append(report.device.name)
    elif report.device:
        facts.append(f"{report.device.name}, {plural(report.device.threads, 'thread')}")
    if report.params:
        facts.append(" ".join(f"{name}={value}" for name, value in report.params.items()))
    facts += short_run(report)
    if facts:
        text.append("\n" + " · ".join(facts), style="not bold dim")
    return text


_MAY_STOP = {declared.code for declared in (state_diverges, state_not_named, state_not_restored)}
"""Doubts of a training of which the timed steps may be others than the checked ones."""


def _best(report: RunReport) -> str:
    """Of several, where it is faster than the baseline, and its steps go on working."""
    if not report.best_among:
        return ""
    comparison = report.comparison(report.best_among[0])
    if comparison is None or comparison.verdict != Verdict.FASTER:
        return ""
    reasons = comparison.trust.reasons if comparison.trust else []
    if any(reason.code in _MAY_STOP for reason in reasons):
        return ""
    *most, last = report.best_among
    if most:
        return f"best: {', '.join(most)} or {last} (statistically tied)"
    return f"best: {last}" if report.method.comparisons > 1 else ""


def below_table(report: RunReport) -> list[Line]:
    """Grades, the best variant, and sustained speedups."""
    below = grades(report)
    if best := _best(report):
        below.append((best, ""))
    if sustained := part("alone.view:alone", report):
        below.append((sustained, "dim"))
    return below
