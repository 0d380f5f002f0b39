"""The headline of a result: failures, verdicts in capitals, and what speaks against them."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.statuses import ExitCode, Grade, Status
from gpulab.core.units import interval, times
from gpulab.draw.blocks import Block, Text
from gpulab.draw.styles import STYLES, with_star
from gpulab.features import part
from gpulab.features.checks.view import doubts
from gpulab.report.report import RunReport
from gpulab.show.view import Line, failure_causes, outcome_words, required, texts
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import shown


def outcome(report: RunReport, compared: Sequence[Comparison] = ()) -> list[Block]:
    """Failures first; then a line for each of these comparisons, its verdict in capitals; then
    what speaks against them.
    """
    causes = failure_causes(report)
    skipped = [line for line in causes if line[1] == STYLES[Status.SKIPPED]]
    lines = [line for line in causes if line not in skipped]
    if report.exit_code == ExitCode.MEASURED and (report.smoke or not report.variants):
        words = outcome_words(report)
        lines.append((words if report.smoke else words.upper(), "bold"))
    compared = compared if report.has_speedups else ()
    names = max((len(comparison.variant) for comparison in compared), default=0)
    verdicts = [_verdict(entry, min(names, 24), quick=report.quick) for entry in compared]
    sustained, reason = part("alone.view:headline", report) or ("", "")
    below: list[Line] = []
    if sustained and not compared:
        below.append((sustained, "bold"))
    if sustained:
        below.append((reason, "dim"))
    below += doubts(report)
    parts = [*texts([*lines, *required(report)]), *verdicts, *texts([*below, *skipped])]
    if parts:
        parts.append("")
    return parts


def _verdict(comparison: Comparison, names: int, *, quick: bool) -> Text:
    word = with_star(str(comparison.verdict), quick=quick).upper()
    text = Text()
    text.append(f"{word:<12} ", f"bold {STYLES[comparison.verdict]}")
    text.append(f"{comparison.variant:<{names}} ")
    if comparison.speedup is None:
        return text
    speedup, kind = comparison.speedup, ""
    more = shown(comparison).words.removeprefix(comparison.verdict)
    sustained = comparison.sustained
    if sustained and sustained.headline_reason:
        speedup, kind = sustained.speedup, " sustained"
        more = f"; interleaved {times(comparison.speedup)}"
    text.append(f"{times(speedup):>7}", "bold")
    text.append(f"{kind}  99 %: {interval(speedup)}")
    grade = comparison.trust.grade if comparison.trust else None
    if grade not in (None, Grade.VERIFIED):
        text.append(f", {grade}", "yellow")
    return text.append(more)
