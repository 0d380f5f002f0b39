"""A comparison in the terminal: the answer, what differs, then a row for each variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.core.units import interval, plural, times
from gpulab.draw.bars import bar
from gpulab.draw.blocks import Block, Fitted, Group, Table, Text, columns_table, rows_table
from gpulab.draw.canvas import wide
from gpulab.draw.styles import STYLES
from gpulab.features.compare.differences import in_common
from gpulab.features.compare.report import (
    ComparisonReport,
    Difference,
    Row,
    ScenarioComparison,
    Side,
)
from gpulab.features.compare.words import (
    FEW_LINES,
    answers,
    environment_lines,
    gate_lines,
    grouped,
    line_text,
    measured_side,
    other_lines,
    shared_differences,
    value,
)
from gpulab.report.gates import GateOutcome
from gpulab.report.sentences import lines

_GATE_STYLES = {
    GateOutcome.HOLDS: "green",
    GateOutcome.FAILS: "bold red",
    GateOutcome.INCONCLUSIVE: "yellow",
}


def comparison_view(
    report: ComparisonReport, *, verbose: bool = False, with_bars: bool = True
) -> Block:
    """All scenarios; with `verbose` all lines of the source that differ; `with_bars` for terminals,
    else a row a variant.
    """
    parts: list[Block] = []
    for verdict, line in answers(report):
        parts.append(Text(line, f"bold {STYLES[verdict] if verdict else ''}".strip()))
    parts += [Text(line, "bold yellow") for line in environment_lines(report.comparisons)]
    parts += [Text(line, _GATE_STYLES[outcome]) for outcome, line in gate_lines(report)]
    parts += [Text(line, "yellow") for line in lines(report.findings)]
    shared = shared_differences(report.comparisons)
    if shared:
        parts += ["", _differences(shared)]
    rows = [row for each in report.comparisons for row in each.rows]
    widths = _widths(rows)
    for each in report.comparisons:
        parts.append("")
        if len(report.comparisons) > 1:
            parts.append(Text(each.scenario, "bold underline"))
        parts.append(_sides(each))
        own = [difference for difference in each.differences if difference not in shared]
        if own:
            parts.append(_differences(own))
        parts += _lines(each, verbose=verbose)
        for heading, group in grouped(each.rows):
            table = _bars(group, rows) if with_bars else _table(group, widths)
            parts += ["", Text(heading, "bold"), table]
        others = [Text(line, "dim") for line in other_lines(each)]
        if others:
            parts += ["", *others]
    return Group(*parts)


def _sides(comparison: ScenarioComparison) -> Block:
    """Return which runs these are, and what they have in common."""
    table = rows_table()
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        table.add_row(Text(letter, "bold"), Text(_said(letter, side)))
    alike = in_common(comparison.a, comparison.b)
    if alike:
        table.add_row("both", Text(", ".join(alike), "dim"))
    return table


def _said(letter: str, side: Side) -> str:
    if side.file:
        return measured_side(side)
    name = side.scenario if side.name == letter else side.name
    if len(side.run_files) > 1:
        return f"{name}: {plural(len(side.run_files), 'run')}, the last {_when(side)}"
    return f"{name}, {_when(side)}"


def _when(side: Side) -> str:
    return side.at[:19].replace("T", " ")


def _differences(differences: Sequence[Difference]) -> Table:
    table = columns_table()
    table.add_column("what differs", overflow="fold")
    table.add_column("A", overflow="fold")
    table.add_column("B", overflow="fold")
    for each in differences:
        table.add_row(Text(each.what), Text(each.a or "none"), Text(each.b or "none"))
    return table


def _lines(comparison: ScenarioComparison, *, verbose: bool) -> Iterator[Block]:
    """Yield the lines of the source that differ."""
    shown = comparison.changed_lines if verbose else comparison.changed_lines[:FEW_LINES]
    if not shown:
        return
    yield ""
    text = Text("lines that differ, A - and B +", "bold", no_wrap=True, overflow="ellipsis")
    file = ""
    for each in shown:
        if each.file != file:
            file = each.file
            text.append(f"\n{file}", "not bold dim")
        text.append(
            f"\n{line_text(each)}", "not bold red" if each.side == "a" else "not bold green"
        )
    left = comparison.changed_line_count - len(shown)
    if left:
        text.append(f"\n      and {left:,} more{'' if verbose else ': --verbose'}", "not bold dim")
    yield text


def _widths(rows: Sequence[Row]) -> tuple[int, int]:
    """Return the widths of names and of values, the same in all tables below each other."""
    names = [len(row.variant) for row in rows]
    values = [len(value(row, each)) for row in rows for each in (row.a, row.b)]
    return min(40, max([7, *names])), max([7, *values])


def _bars(rows: Sequence[Row], every: Sequence[Row]) -> Fitted:
    """Two rows a variant, A above B, in bars from zero; the ratio stands below its name. Columns
    are as wide as those of `every` table.
    """
    values = [each.value for row in rows for each in (row.a, row.b) if each]
    longest = max(values, default=1.0) or 1.0
    name, figure = _widths(every)
    name = max(name, *(wide(_ratio(row)) for row in every))
    verdict = max(len("verdict"), *(len(row.verdict) for row in every))

    def of_width(width: int) -> Iterator[Block]:
        cells = min(80, max(8, width - name - figure - verdict - 9))
        table = columns_table()
        table.add_column("variant, B/A", overflow="fold", width=name)
        table.add_column("", no_wrap=True, width=1)
        table.add_column("", justify="right", no_wrap=True, min_width=figure)
        table.add_column("from zero", no_wrap=True, width=cells)
        table.add_column("verdict", no_wrap=True, min_width=verdict)
        for row in rows:
            for letter, style, each in (("A", "blue", row.a), ("B", "cyan", row.b)):
                drawn = bar(each.value / longest, cells) if each else ""
                words = Text(row.variant) if letter == "A" else Text(_ratio(row))
                last = Text(row.verdict, STYLES[row.verdict]) if letter == "A" else ""
                table.add_row(words, letter, value(row, each), Text(drawn, style), last)
        yield table

    return Fitted(of_width)


def _ratio(row: Row) -> str:
    """Such as:   1.012x (0.990 to 1.031)."""
    return f"  {times(row.ratio)} ({interval(row.ratio)})" if row.ratio else ""


def _table(rows: Sequence[Row], widths: tuple[int, int]) -> Table:
    name, figure = widths
    table = columns_table()
    table.add_column("variant", overflow="fold", width=name)
    for head, width in (("A", figure), ("B", figure), ("B/A", 7), ("99 % interval", 14)):
        table.add_column(head, justify="right", no_wrap=True, min_width=width)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row.variant),
            value(row, row.a),
            value(row, row.b),
            times(row.ratio) if row.ratio else "",
            interval(row.ratio),
            Text(row.verdict, STYLES[row.verdict]),
        )
    return table
