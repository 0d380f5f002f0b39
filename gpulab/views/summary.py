"""Several runs, one below the other: what each claims, what it measured, and what that does to goodput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.protocol.statuses import Verdict
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport
from gpulab.views.findings import sentence_with_place
from gpulab.views.goodput import UNRELIABLE, share
from gpulab.views.text import QUICK, STYLES, Glyphs, seconds, span, times, with_star

_HEADS = ("", "speedup", "99 % interval", "verdict", "step goodput")
_LEFT_ALIGNED = (0, 3)


def run_line(report: RunReport, glyphs: Glyphs, number: int, count: int) -> Text:
    """One of several runs that has ended: its number, and what came out."""
    verdicts = [
        f"{comparison.variant} {times(comparison.speedup)} {comparison.verdict}"
        for comparison in report.comparisons
        if comparison.against == report.baseline
    ]
    if report.functions:
        verdicts = [f"{variant.name} {seconds(variant.time_s.median)}" for variant in report.variants if variant.time_s]
    measured = report.exit_code == ExitCode.MEASURED
    text = Text(glyphs(f"{number:>2} of {count}  {report.scenario}: "), no_wrap=True, overflow=glyphs.overflow)
    text.append(with_star(report.outcome, quick=report.quick), "" if measured else "bold red")
    reason = sentence_with_place(report.reason) if report.reason and not (measured and verdicts) else ""
    return text.append(glyphs(f"  {reason or ', '.join(verdicts)}"), "dim")


def summary(reports: Sequence[RunReport], glyphs: Glyphs) -> RenderableType:
    """A heading for each run with its claim, a row for each comparison with its baseline, in columns that line up."""
    rows_of_runs = [_rows(report) for report in reports]
    rows = [row for rows in rows_of_runs for row in rows]
    widths = [max(map(len, column)) for column in zip(_HEADS, *(row.cells for row in rows), strict=True)]
    parts: list[RenderableType] = [Text(_aligned(_HEADS, widths), "bold", no_wrap=True)]
    for report, rows_of_run in zip(reports, rows_of_runs, strict=True):
        heading = Text(glyphs(report.scenario), "bold")
        heading.append(glyphs(f"  {report.claim}") if report.claim else "", "not bold dim")
        parts.append(heading)
        if report.exit_code != ExitCode.MEASURED or not rows_of_run:
            parts.append(_outcome(report, glyphs))
        parts += [row.text(widths, glyphs) for row in rows_of_run]
    if any(report.quick for report in reports):
        parts.append(Text(QUICK, "dim"))
    if any(row.cells[4].count(UNRELIABLE) for row in rows):
        parts.append(Text(f"{UNRELIABLE} unreliable: see notes", "dim"))
    return Group(*parts)


@dataclass(frozen=True)
class _Row:
    """Variant, speedup, interval, verdict, and goodput before and after; then the variant's own claim."""

    cells: tuple[str, str, str, str, str]
    verdict: Verdict
    claim: str

    def text(self, widths: Sequence[int], glyphs: Glyphs) -> Text:
        text = Text(glyphs(_aligned(self.cells, widths)), no_wrap=True, overflow=glyphs.overflow)
        start = sum(widths[:3]) + 2 * 4
        text.stylize(STYLES[self.verdict], start, start + len(self.cells[3]))
        return text.append(glyphs(f"  {self.claim}"), "dim")


def _rows(report: RunReport) -> list[_Row]:
    shares = {variant.name: share(variant.goodput) for variant in report.variants if variant.goodput}
    against_baseline = {
        comparison.variant for comparison in report.comparisons if comparison.against == report.baseline
    }
    rows = []
    for comparison in report.comparisons:
        if comparison.against == report.baseline or comparison.variant not in against_baseline:
            ends = [shares.get(name, "") for name in (comparison.against, comparison.variant)]
            cells = (
                comparison.variant,
                times(comparison.speedup),
                span(comparison.low, comparison.high),
                with_star(comparison.verdict, quick=report.quick),
                " > ".join(ends) if all(ends) else "",
            )
            claim = report.variant(comparison.variant).claim or ""
            rows.append(_Row(cells, comparison.verdict, claim))
    return rows


def _outcome(report: RunReport, glyphs: Glyphs) -> Text:
    measured = report.exit_code == ExitCode.MEASURED
    reason = sentence_with_place(report.reason) if report.reason else ""
    if measured and not reason:
        reason = "nothing is compared: see its roofline"
    outcome = with_star(report.outcome, quick=report.quick)
    return Text(glyphs(f"  {outcome}{': ' * bool(reason)}{reason}"), "dim" if measured else "bold red")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if place in _LEFT_ALIGNED else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"  {'  '.join(padded)}"
