"""The result of a run as a person reads it: the table, the claim beside the measured, and what must
be known.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.core.statuses import FailureKind, Shows, Verdict
from gpulab.core.text import without_boilerplate
from gpulab.core.units import plural
from gpulab.features.alone.view import alone, headline
from gpulab.features.checks.view import checks, grades
from gpulab.features.first_steps.view import first_steps
from gpulab.features.goodput.operations import operations
from gpulab.features.goodput.view import goodput, job_goodput, phases
from gpulab.features.kernels.view import kernels
from gpulab.features.memory.view import memory
from gpulab.features.telemetry.view import solo_runs
from gpulab.features.tuning.view import tunings
from gpulab.report.report import RunReport
from gpulab.report.view import (
    Line,
    against_earlier_runs,
    claims,
    clocks,
    comparison_table,
    failure_causes,
    figures,
    inconclusive,
    method,
    note_lines,
    required,
)

_LAST_LINES = 10


def result(report: RunReport, *, verbose: bool = False) -> RenderableType:
    """Header, table, grades, claim, notes, method: everything of a finished run but where its file
    is.

    `verbose`: all notes, and every check.
    """
    parts: list[RenderableType] = [header(report), ""]
    sustained, reason = headline(report)
    if sustained:
        parts += [Text(sustained, "bold"), Text(reason, "dim"), ""]
    if report.compares and any(variant.time_s for variant in report.variants):
        parts += [comparison_table(report), ""]
    if of_table := below_table(report):
        parts += [*(Text(line, style) for line, style in of_table), ""]
    if (figure := lesson_figure(report)) is not None:
        parts += [figure, ""]
    parts += tables(report)
    below = [
        *failure_causes(report),
        *required(report),
        *claims(report),
        *against_earlier_runs(report),
        *figures(report),
    ]
    below += [*inconclusive(report), *note_lines(report, verbose=verbose)]
    below += [(method(report), "dim")] if report.method.epochs else []
    parts += [Text(line, style) for line, style in below]
    if verbose and (listed := checks(report)) is not None:
        parts += ["", listed]
    return Group(*parts)


def lesson_figure(report: RunReport) -> RenderableType | None:
    """What the scenario is made to show where that is more than speedups."""
    views = {Shows.CURVE: first_steps, Shows.CLOCKS: clocks, Shows.MEMORY: memory}
    return views[report.shows](report) if report.shows in views else None


def tables(report: RunReport) -> list[RenderableType]:
    """What there is besides: memory, tuning, kernels, solo runs, parts of a step, operations."""
    parts: list[RenderableType] = []
    views = [tunings, kernels, solo_runs, phases, goodput, operations, job_goodput]
    for view in views if report.shows == Shows.MEMORY else [memory, *views]:
        part = view(report)
        parts += [part, ""] if part is not None else []
    return parts


def failures(report: RunReport) -> Text:
    """What a failed run leaves to look at: the tracebacks, and the last lines that the scenario
    printed.
    """
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


def _is_faster(report: RunReport, name: str) -> bool:
    comparison = report.comparison(name)
    return comparison is not None and comparison.verdict == Verdict.FASTER


def header(report: RunReport) -> Text:
    """What ran, on what, with which parameters."""
    title = f" · {report.title}" if report.title and report.title != report.scenario else ""
    text = Text(f"{report.scenario}{title}", style="bold")
    facts = []
    if report.device:
        threads = "" if report.on_gpu else f", {plural(report.device.threads, 'thread')}"
        facts.append(f"{report.device.name}{threads}")
    facts += (
        [" ".join(f"{name}={value}" for name, value in report.params.items())]
        if report.params
        else []
    )
    facts += ["a smoke run: not for conclusions"] if report.smoke else []
    facts += ["a quick run: wide intervals"] if report.quick else []
    if facts:
        text.append("\n" + " · ".join(facts), style="not bold dim")
    return text


def below_table(report: RunReport) -> list[Line]:
    """What belongs to the numbers of the table: grades, the best, and variants that each ran
    alone.
    """
    below = grades(report)
    if len(report.best_among) > 1 and report.best is None:
        *most, last = report.best_among
        below.append((f"best: {', '.join(most)} or {last} (statistically tied)", ""))
    elif (
        report.best
        and len(report.best_among) < report.method.comparisons
        and _is_faster(report, report.best)
    ):
        below.append((f"best: {report.best}", ""))
    sustained = alone(report)
    return [*below, *([(sustained, "dim")] if sustained else [])]
