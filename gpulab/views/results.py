"""The result of a run as a person reads it: the table, the claim beside the measured, and what must be known."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.analysis.comparison import Comparison
from gpulab.protocol.finding import Finding
from gpulab.protocol.statuses import FailureKind, Status, Verdict
from gpulab.report.build import CLOSE
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport, VariantReport
from gpulab.views.earlier import earlier_runs
from gpulab.views.findings import sentence, sentence_with_place
from gpulab.views.goodput import goodput, phases
from gpulab.views.job_goodput import job_goodput
from gpulab.views.notes import MOST, conclusions
from gpulab.views.notes import notes as ranked_notes
from gpulab.views.operations import operations
from gpulab.views.sustained import alone, headline
from gpulab.views.table import comparison_table
from gpulab.views.telemetry import solo_runs
from gpulab.views.text import STYLES, Glyphs, plural, seconds, times, without_boilerplate
from gpulab.views.trust import checks, grades

_LAST_LINES = 10
_BROKEN = (Status.FAILED, Status.WRONG, Status.INVALID, Status.OUT_OF_MEMORY)
_Line = tuple[str, str]
"""Text and style."""


def result(report: RunReport, glyphs: Glyphs, *, verbose: bool = False) -> RenderableType:
    """Header, table, grades, claim, notes, method: everything of a finished run but where its file is.

    `verbose`: all notes, and every check.
    """
    parts: list[RenderableType] = [_header(report, glyphs), ""]
    sustained, reason = headline(report)
    if sustained:
        parts += [Text(glyphs(sustained), "bold"), Text(glyphs(reason), "dim"), ""]
    if any(variant.time_s for variant in report.variants):
        parts += [comparison_table(report, glyphs), ""]
    if below := _below_table(report):
        parts += [*(Text(glyphs(line), style) for line, style in below), ""]
    for view in (solo_runs, phases, goodput, operations, job_goodput):
        part = view(report, glyphs)
        parts += [part, ""] if part is not None else []
    parts += [Text(glyphs(line), style) for line, style in _notes(report, verbose=verbose)]
    if verbose and (listed := checks(report, glyphs)) is not None:
        parts += ["", listed]
    return Group(*parts)


def failures(report: RunReport, glyphs: Glyphs) -> Text:
    """What a failed run leaves to look at: the tracebacks, and the last lines that the scenario printed."""
    text = Text()
    tracebacks = dict.fromkeys(
        without_boilerplate(failure.traceback).rstrip()
        for failure in report.failures
        if failure.traceback and failure.kind not in (FailureKind.CANCELLED, FailureKind.TIMEOUT)
    )
    for traceback in tracebacks:
        text.append(glyphs.block(traceback) + "\n", "dim")
    printed = [*report.log.head, *report.log.tail][-_LAST_LINES:]
    cancelled = any(failure.kind == FailureKind.CANCELLED for failure in report.failures)
    if report.failures and printed and not cancelled:
        text.append("last output lines:\n" + "".join(f"  {glyphs(line)}\n" for line in printed), "dim")
    return text


def claims(report: RunReport) -> list[_Line]:
    """What the source promises beside what was measured."""
    claimed: list[_Line] = []
    if report.claim:
        nothing, so_far = ("nothing yet", " so far") if report.under_way else ("nothing", "")
        measured = [
            f"{comparison.variant} {_speedup(comparison)} ({comparison.verdict}{so_far})"
            for comparison in report.comparisons
            if comparison.speedup is not None and comparison.against == report.baseline
        ]
        beside = f"; measured here: {', '.join(measured) or nothing}" if report.comparisons or report.under_way else ""
        claimed.append((f"claim: {report.claim}{beside}", ""))
    for variant in report.variants:
        comparison = report.comparison(variant.name)
        if variant.claim and comparison and comparison.speedup is not None:
            text = f"claim of {variant.name}: {variant.claim}; measured here: {_speedup(comparison)}"
            claimed.append((text, ""))
    return claimed


def _is_faster(report: RunReport, name: str) -> bool:
    comparison = report.comparison(name)
    return comparison is not None and comparison.verdict == Verdict.FASTER


def _speedup(comparison: Comparison) -> str:
    """The one that heads the result."""
    sustained = comparison.sustained
    return f"{times(sustained.speedup)} sustained" if sustained and sustained.heads else times(comparison.speedup)


def _header(report: RunReport, glyphs: Glyphs) -> Text:
    title = f" · {report.title}" if report.title and report.title != report.scenario else ""
    text = Text(glyphs(f"{report.scenario}{title}"), style="bold")
    facts = []
    if report.device:
        threads = "" if report.on_gpu else f", {plural(report.device.threads, 'thread')}"
        facts.append(f"{report.device.name}{threads}")
    facts += [" ".join(f"{name}={value}" for name, value in report.params.items())] if report.params else []
    facts += ["a smoke run: not for conclusions"] if report.smoke else []
    facts += ["a quick run: wide intervals"] if report.quick else []
    if facts:
        text.append("\n" + glyphs(" · ".join(facts)), style="not bold dim")
    return text


def _below_table(report: RunReport) -> list[_Line]:
    """What belongs to the numbers of the table: grades, the best, and variants that each ran alone."""
    below = grades(report)
    if len(report.best_among) > 1 and report.best is None:
        *most, last = report.best_among
        below.append((f"best: {', '.join(most)} or {last}, which cannot be told apart", ""))
    elif report.best and len(report.best_among) < report.method.comparisons and _is_faster(report, report.best):
        below.append((f"best: {report.best}", ""))
    sustained = alone(report)
    return [*below, *([(sustained, "dim")] if sustained else [])]


def _notes(report: RunReport, *, verbose: bool) -> list[_Line]:
    """Lines below the table, the cause of a failure first."""
    notes = [*_causes(report), *claims(report)]
    if earlier := earlier_runs(report.comparisons):
        notes.append((earlier, "dim"))
    if report.sweet_spot:
        text = f"sweet spot: {report.sweet_spot}, the first within {CLOSE:.0%} of the best time per item"
        notes.append((text, "bold"))
    for comparison in report.comparisons:
        kept = comparison.reason is not None and comparison.reason.code == "failed_after"
        if comparison.reason and (kept or comparison.verdict == Verdict.INCONCLUSIVE):
            text = f"{comparison.variant} against {comparison.against}: {sentence(comparison.reason)}"
            notes.append((text, STYLES[Verdict.INCONCLUSIVE]))
    for figure in report.figures:
        if figure.value is not None:
            notes.append((f"{figure.variant or report.scenario}: {figure.name} {figure.value:g}", ""))
    remarks, weakening, more = ranked_notes(report, most=None if verbose else MOST)
    notes += [(line, "") for line in [*conclusions(report), *remarks]]
    notes += _both_clocks(report.variants)
    notes += [(f"note: {line}", "yellow") for line in weakening]
    notes += [(f"{plural(more, 'more note')}: --verbose", "dim")] if more else []
    if report.telemetry and report.telemetry.no_gpu_reason:
        style = "yellow" if report.on_gpu else "dim"
        notes.append((f"no GPU telemetry: {sentence(report.telemetry.no_gpu_reason)}", style))
    if report.method.epochs:
        notes.append((_method(report), "dim"))
    return notes


def _causes(report: RunReport) -> list[_Line]:
    """Why the run, or a variant, came to nothing: what explains the others first."""
    causes: list[_Line] = []
    broken = [variant for variant in report.variants if variant.status in _BROKEN]
    if report.reason and report.exit_code != ExitCode.MEASURED and not _is_of_a_variant(report.reason, broken):
        causes.append((f"{report.outcome}: {sentence_with_place(report.reason)}", STYLES[Status.FAILED]))
    names: dict[tuple[str, str], list[str]] = {}
    for variant in broken:
        place = ", ".join(str(part) for part in (variant.stage, f"line {variant.line}" * bool(variant.line)) if part)
        where = f" ({place})" if place else ""
        reason = f": {sentence(variant.reason)}" if variant.reason else ""
        names.setdefault((f"{variant.status}{where}{reason}", STYLES[variant.status]), []).append(variant.name)
    causes += [(f"{', '.join(together)} {text}", style) for (text, style), together in names.items()]
    skipped: dict[str, list[str]] = {}
    for variant in report.variants:
        if variant.status == Status.SKIPPED and variant.reason:
            skipped.setdefault(sentence(variant.reason), []).append(variant.name)
    return causes + [
        (f"{', '.join(names)} skipped: {reason}", STYLES[Status.SKIPPED]) for reason, names in skipped.items()
    ]


def _is_of_a_variant(reason: Finding, variants: Iterable[VariantReport]) -> bool:
    """Whether one of the variants is listed with this reason."""
    return any(
        variant.name == reason.variant and variant.reason and variant.reason.code == reason.code for variant in variants
    )


def _both_clocks(variants: Iterable[VariantReport]) -> list[_Line]:
    """On a GPU: what each variant takes on the host's clock, launches included, and on the device's own."""
    both = [
        f"{variant.name} {seconds(variant.clocks['wall'])} / {seconds(variant.clocks['device'])}"
        for variant in variants
        if len(variant.clocks) > 1
    ]
    return [(f"wall / device clock: {', '.join(both)}", "")] if both else []


def _method(report: RunReport) -> str:
    method = report.method
    facts = [
        f"{plural(method.epochs, 'epoch')}, {plural(method.rounds, 'round')} of paired blocks, "
        f"{method.clock} clock, {method.cache} cache",
        f"interval over {method.unit}",
        f"floor {method.floor:.0%}",
    ]
    facts += [f"stopped on {method.stopped}"] if method.stopped else []
    facts += [f"empty block {seconds(method.empty_block_s)}"] if method.empty_block_s else []
    contention = [variant.contention for variant in report.variants if variant.contention is not None]
    facts += [f"contention up to {max(contention):.0%}"] if contention else []
    return " · ".join(facts)
