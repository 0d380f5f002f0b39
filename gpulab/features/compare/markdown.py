"""A comparison as Markdown, for a pull request: the answer, a table, and what differs below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.core.text import markdown_code
from gpulab.core.text import markdown_text as escaped
from gpulab.core.units import plural, span, times
from gpulab.features.compare.report import (
    ChangedLine,
    ComparisonReport,
    Pairing,
    ScenarioComparison,
)
from gpulab.features.compare.words import (
    HEADINGS,
    answers,
    environment_lines,
    gate_lines,
    other_lines,
    title,
    value,
)
from gpulab.report.sentences import lines

_MOST_LINES = 100
"""Of the source: what a pull request shows anyway."""


def comparison_markdown(report: ComparisonReport) -> list[str]:
    """Its lines."""
    text = [f"### gpulab: {escaped(report.before)} → {escaped(report.after)}", ""]
    said = [line for _, line in (*answers(report), *gate_lines(report))]
    said += environment_lines(report.comparisons)
    text += [f"**{escaped(line)}**  " for line in said]
    text += [f"{escaped(line)}  " for line in lines(report.findings)]
    for each in report.comparisons:
        text += ["", *_scenario(each)]
    return text


def _scenario(comparison: ScenarioComparison) -> Iterator[str]:
    yield f"#### {escaped(comparison.scenario)}"
    for pairing in Pairing:
        rows = [row for row in comparison.rows if row.pairing == pairing]
        if rows:
            yield ""
            heads = (HEADINGS[pairing], "A", "B", "B/A speed", "99 % interval", "verdict")
            yield _row(heads)
            yield "| :-- | --: | --: | --: | --: | :-- |"
        for row in rows:
            ratio = times(row.ratio) if row.ratio else ""
            values = value(row, row.a), value(row, row.b), ratio, span(row.low, row.high)
            yield _row([title(row), *values, row.verdict])
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
        yield from markdown_code("\n".join(map(_line, shown)))
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
