"""A comparison as Markdown, for a pull request: the answer, a table, and what differs below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.core.text import fenced
from gpulab.core.text import markdown_text as escaped
from gpulab.core.units import plural, span, times
from gpulab.features.compare.report import (
    ChangedLine,
    ComparisonReport,
    ScenarioComparison,
)
from gpulab.features.compare.words import (
    answers,
    environment_lines,
    gate_lines,
    grouped,
    other_lines,
    value,
)
from gpulab.report.sentences import lines

_MOST_LINES = 100
"""Of the source: what a pull request shows anyway."""


def comparison_markdown(report: ComparisonReport) -> list[str]:
    """Its lines."""
    text = [f"### gpulab: {escaped(report.before)} → {escaped(report.after)}", ""]
    summary = [line for _, line in answers(report)]
    summary += environment_lines(report.comparisons)
    summary += [line for _, line in gate_lines(report)]
    text += [f"**{escaped(line)}**  " for line in summary]
    text += [f"{escaped(line)}  " for line in lines(report.findings)]
    for each in report.comparisons:
        text += ["", *_scenario(each)]
    return text


def _scenario(comparison: ScenarioComparison) -> Iterator[str]:
    yield f"#### {escaped(comparison.scenario)}"
    for heading, rows in grouped(comparison.rows):
        yield ""
        yield _row((heading, "A", "B", "B/A", "99 % interval", "verdict"))
        yield "| :-- | --: | --: | --: | --: | :-- |"
        for row in rows:
            ratio = times(row.ratio) if row.ratio else ""
            values = value(row, row.a), value(row, row.b), ratio, span(row.low, row.high)
            yield _row([row.variant, *values, row.verdict])
    others = other_lines(comparison)
    if others:
        yield ""
    for line in others:
        yield f"- {escaped(line)}"
    yield from _differences(comparison)


def _differences(comparison: ScenarioComparison) -> Iterator[str]:
    if not comparison.differences:
        return
    count = plural(len(comparison.differences), "difference")
    yield ""
    yield f"<details><summary>{count}</summary>"
    yield ""
    yield _row(("what differs", "A", "B"))
    yield "| :-- | :-- | :-- |"
    for each in comparison.differences:
        yield _row((each.what, each.a or "none", each.b or "none"))
    shown = comparison.changed_lines[:_MOST_LINES]
    if shown:
        yield ""
        yield from fenced(map(_line, shown), "diff")
    left = comparison.changed_line_count - len(shown)
    if left:
        yield ""
        yield f"and {left:,} more lines"
    yield ""
    yield "</details>"


def _line(line: ChangedLine) -> str:
    return f"{'-' if line.side == 'a' else '+'}{line.text}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"
