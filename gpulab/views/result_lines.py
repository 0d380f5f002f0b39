"""Lines below the table of a result: causes of a failure, claims, what weakens it, how it was made."""

from __future__ import annotations

from collections.abc import Iterable

from gpulab.analysis.comparison import Comparison
from gpulab.protocol.finding import Finding
from gpulab.protocol.statuses import Status, Verdict
from gpulab.report.build import CLOSE
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport, VariantReport
from gpulab.views.earlier import earlier_runs
from gpulab.views.findings import sentence, sentence_with_place
from gpulab.views.notes import MOST, conclusions
from gpulab.views.notes import notes as ranked_notes
from gpulab.views.text import STYLES, plural, seconds, times

Line = tuple[str, str]
"""Text and style."""
_BROKEN = (Status.FAILED, Status.WRONG, Status.INVALID, Status.OUT_OF_MEMORY)


def causes(report: RunReport) -> list[Line]:
    """Why the run, or a variant, came to nothing: what explains the others first."""
    lines: list[Line] = []
    broken = [variant for variant in report.variants if variant.status in _BROKEN]
    if report.reason and report.exit_code != ExitCode.MEASURED and not _is_of_a_variant(report.reason, broken):
        lines.append((f"{report.outcome}: {sentence_with_place(report.reason)}", STYLES[Status.FAILED]))
    names: dict[tuple[str, str], list[str]] = {}
    for variant in broken:
        place = ", ".join(str(part) for part in (variant.stage, f"line {variant.line}" * bool(variant.line)) if part)
        where = f" ({place})" if place else ""
        reason = f": {sentence(variant.reason)}" if variant.reason else ""
        names.setdefault((f"{variant.status}{where}{reason}", STYLES[variant.status]), []).append(variant.name)
    lines += [(f"{', '.join(together)} {text}", style) for (text, style), together in names.items()]
    skipped: dict[str, list[str]] = {}
    for variant in report.variants:
        if variant.status == Status.SKIPPED and variant.reason:
            skipped.setdefault(sentence(variant.reason), []).append(variant.name)
    return lines + [
        (f"{', '.join(names)} skipped: {reason}", STYLES[Status.SKIPPED]) for reason, names in skipped.items()
    ]


def required(report: RunReport) -> list[Line]:
    """Whether the scenario's own demand is met, which an exercise makes; a run that fails it has its reason."""
    if not report.exercise or report.fail_below is None or report.under_way:
        return []
    what = f"exercise {report.exercise}"
    if report.exit_code == ExitCode.MEASURED:
        return [(f"{what}: passed; it asks for {times(report.fail_below)}", "bold green")]
    return [(f"{what}: not passed; it asks for {times(report.fail_below)}, and for checks that all pass", "bold")]


def claims(report: RunReport) -> list[Line]:
    """What the source promises beside what was measured."""
    claimed: list[Line] = []
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


def _is_of_a_variant(reason: Finding, variants: Iterable[VariantReport]) -> bool:
    """Whether one of the variants is listed with this reason."""
    return any(
        variant.name == reason.variant and variant.reason and variant.reason.code == reason.code for variant in variants
    )


def _both_clocks(variants: Iterable[VariantReport]) -> list[Line]:
    """On a GPU: what each variant takes on the host's clock, launches included, and on the device's own."""
    both = [
        f"{variant.name} {seconds(variant.clocks['wall'])} / {seconds(variant.clocks['device'])}"
        for variant in variants
        if "device" in variant.clocks and "wall" in variant.clocks
    ]
    return [(f"wall / device clock: {', '.join(both)}", "")] if both else []


def figures(report: RunReport) -> list[Line]:
    """The sweet spot, what the scenario itself says, and both clocks."""
    lines: list[Line] = []
    if report.sweet_spot:
        text = f"sweet spot: {report.sweet_spot}, the first within {CLOSE:.0%} of the best time per item"
        lines.append((text, "bold"))
    for figure in report.figures:
        if figure.value is not None:
            lines.append((f"{figure.variant or report.scenario}: {figure.name} {figure.value:g}", ""))
    return [*lines, *(_both_clocks(report.variants) if report.compares else [])]


def inconclusive(report: RunReport) -> list[Line]:
    """Why a comparison has no verdict."""
    lines = []
    for comparison in report.comparisons:
        kept = comparison.reason is not None and comparison.reason.code == "failed_after"
        if comparison.reason and (kept or comparison.verdict == Verdict.INCONCLUSIVE):
            text = f"{comparison.variant} against {comparison.against}: {sentence(comparison.reason)}"
            lines.append((text, STYLES[Verdict.INCONCLUSIVE]))
    return lines


def notes(report: RunReport, *, verbose: bool) -> list[Line]:
    """What explains the result, and what weakens it."""
    remarks, weakening, more = ranked_notes(report, most=None if verbose else MOST)
    lines = [(line, "") for line in [*conclusions(report), *remarks]]
    lines += [(f"note: {line}", "yellow") for line in weakening]
    lines += [(f"{plural(more, 'more note')}: --verbose", "dim")] if more else []
    if report.telemetry and report.telemetry.no_gpu_reason:
        style = "yellow" if report.on_gpu else "dim"
        lines.append((f"no GPU telemetry: {sentence(report.telemetry.no_gpu_reason)}", style))
    return lines


def beside_earlier(report: RunReport) -> list[Line]:
    """Where earlier runs of the same came out."""
    earlier = earlier_runs(report.comparisons)
    return [(earlier, "dim")] if earlier else []


def method(report: RunReport) -> str:
    made = report.method
    facts = [
        f"{plural(made.epochs, 'epoch')}, {plural(made.rounds, 'round')} of paired blocks, "
        f"{made.clock} clock, {made.cache} cache",
        f"interval over {made.unit}",
        f"floor {made.floor:.0%}",
    ]
    facts += [f"stopped on {made.stopped}"] if made.stopped else []
    facts += [f"empty block {seconds(made.empty_block_s)}"] if made.empty_block_s else []
    contention = [variant.contention for variant in report.variants if variant.contention is not None]
    facts += [f"contention up to {max(contention):.0%}"] if contention else []
    return " · ".join(facts)


def _speedup(comparison: Comparison) -> str:
    """The one that heads the result."""
    sustained = comparison.sustained
    return f"{times(sustained.speedup)} sustained" if sustained and sustained.heads else times(comparison.speedup)
