"""The result of a program that was followed, on a terminal and on a screen."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.units import byte_count
from gpulab.draw.blocks import Block, Group, Text
from gpulab.draw.styles import STYLES
from gpulab.features import views
from gpulab.features.goodput.operations import operations
from gpulab.features.goodput.view import goodput, traces
from gpulab.features.telemetry.fields import FIELDS, columns
from gpulab.report.feature import Section
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.show.limits import limits
from gpulab.show.parts import part, tables_of
from gpulab.show.view import Line, failure_causes, note_lines

_MOST_OPERATIONS, _ALL_OPERATIONS = 8, 40


def program_result(
    report: RunReport,
    *,
    verbose: bool = False,
    run_file: str = "",
    tables: Sequence[Block] = (),
) -> Block:
    """How it ended, its steps, where their time goes, what was sampled, and the notes. `tables`:
    in place of that of the operations.
    """
    heading = Text(report.scenario, "bold")
    heading.append(f" · {report.title}", "not bold")
    if report.device:
        heading.append(f"\n{report.device.name}", "not bold dim")
    parts: list[Block] = [heading, ""]
    parts += [Text(*line) for line in _why_it_ended(report)]
    parts += tables_of(report, views(Section.PROGRAM))
    if sampled := telemetry_line(report):
        parts += [Text(sampled)]
    parts.append("")
    for listed in tables_of(report, views(Section.RANKS)):
        parts += [listed, ""]
    most = _ALL_OPERATIONS if verbose else _MOST_OPERATIONS
    of_operations: Sequence[Block | None] = tables or [operations(report, most=most)]
    for table in (goodput(report), *of_operations, traces(report)):
        if table is not None:
            parts += [table, ""]
    if (limited := limits(report.variants)) is not None:
        parts += [Text("limits, and what to do", "bold"), limited, ""]
    found = part("findings.view:advice_of", report.variants) if verbose else None
    if found is not None:
        parts += [found, ""]
    notes = [Text(*line) for line in note_lines(report)]
    if run_file:
        notes.append(Text(f"run file: {run_file}", "dim"))
    return Group(*parts, *notes) if notes else Group(*parts[:-1])


def _why_it_ended(report: RunReport) -> list[Line]:
    """An exit code of the program's own is no stage of a measurement that failed."""
    for variant in report.variants:
        if variant.reason:
            return [(f"{variant.name}: {sentence(variant.reason)}", STYLES[variant.status])]
    return failure_causes(report)


def telemetry_line(report: RunReport) -> str:
    """The highest of what was sampled of the device or, without one, of the host."""
    telemetry = report.telemetry
    if telemetry is None or not telemetry.readings:
        return ""
    figures = []
    for name in columns(host=telemetry.gpu is None):
        field, peak = FIELDS[name], telemetry.peaks.get(name)
        if peak is not None:
            value = byte_count(peak) if field.unit == "B" else f"{peak:.3g} {field.unit}"
            figures.append(f"{field.label} {value}")
    where = telemetry.gpu or "host"
    return f"{where}, at most: {', '.join(figures)}" if figures else ""
