"""What a comparison says, in words: the same in the terminal, on the screen and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gpulab.core.estimate import Estimate, value_of
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.core.units import interval, plural, seconds, times
from gpulab.features.compare.findings import different_lessons, environment_changed
from gpulab.features.compare.report import (
    ChangedLine,
    ComparisonReport,
    Difference,
    Pairing,
    Row,
    ScenarioComparison,
    Side,
)
from gpulab.report.gates import GateOutcome
from gpulab.report.sentences import lines, with_reason
from gpulab.stats.verdicts import excluded, is_quotient, shown

_MOST_ANSWERS = 8
_WORST = (Verdict.WRONG, Verdict.SLOWER, Verdict.FASTER)
_MOST_FILES = 5
_SHA = 12
FEW_LINES = 12
"""Of the source, where not all are asked for."""


def grouped(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """(heading, rows) of those that are compared alike, the paired ones first."""
    groups: dict[tuple[Pairing, str | None], list[Row]] = {}
    for pairing in Pairing:
        for row in rows:
            if row.pairing == pairing:
                against = row.against if pairing == Pairing.WITHIN_RUNS else None
                groups.setdefault((pairing, against), []).append(row)
    return [(_heading(*key), of_key) for key, of_key in groups.items()]


def _heading(pairing: Pairing, against: str | None) -> str:
    match pairing:
        case Pairing.PAIRED:
            return "time, A and B interleaved (paired)"
        case Pairing.WITHIN_RUNS:
            return f"speedup over {against} (paired within each run)"
        case Pairing.UNPAIRED:
            return "time in separate runs (unpaired)"
        case _:
            assert_never(pairing)


def title(row: Row) -> str:
    """Return what the values of a row are of."""
    if row.pairing == Pairing.WITHIN_RUNS:
        return f"{row.variant} over {row.against}"
    return row.variant


def value(row: Row, estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if row.pairing == Pairing.WITHIN_RUNS:
        return times(estimate.value)
    return seconds(estimate.value)


def change(row: Row) -> str:
    """A row in a line: what, from, to, and how many times as fast."""
    text = f"{title(row)}: "
    if row.a and row.b:
        text += f"{value(row, row.a)} → {value(row, row.b)}, "
    return f"{text}{times(row.ratio)} as fast ({interval(row.ratio)})"


def measured_side(side: Side) -> str:
    """Return the code that a side measured anew ran: its commit, its Python, and its files."""
    words = [side.name]
    if side.revision:
        words.append(f"commit {side.revision[:_SHA]}")
    words.append(f"{side.file} {side.source_sha256[:_SHA]}")
    others = [f"{path} {sha[:_SHA]}" for path, sha in side.files.items() if path != side.file]
    words += others[:_MOST_FILES]
    if len(others) > _MOST_FILES:
        words.append(f"and {plural(len(others) - _MOST_FILES, 'more file')}")
    words.append(f"by {side.python}")
    return ", ".join(words)


def answers(report: ComparisonReport) -> list[tuple[Verdict | None, str]]:
    """Return what is wrong or changed, a line a row, the worst first; else that nothing did. Of one
    that was stopped that it was comes first.
    """
    if report.outcome != Conclusion.INTERRUPTED:
        return _answers(report)
    counts = [row.b.n or 0 for each in report.comparisons for row in each.rows if row.b]
    pairs = plural(max(counts, default=0), "pair")
    stopped = (Verdict.INCONCLUSIVE, f"interrupted after {pairs} of processes")
    return [stopped, *(_answers(report) if counts else [])]


def _answers(report: ComparisonReport) -> list[tuple[Verdict | None, str]]:
    found = [
        (each, row)
        for each in report.comparisons
        for row in each.rows
        if row.changed or row.verdict == Verdict.WRONG
    ]
    found.sort(key=lambda entry: (_WORST.index(entry[1].verdict), value_of(entry[1].ratio) or 1.0))
    if not found:
        return _nothing_changed(report)
    several = len(report.comparisons) > 1
    said: list[tuple[Verdict | None, str]] = []
    for each, row in found[:_MOST_ANSWERS]:
        scenario = f"{each.scenario}, " if several else ""
        line = f"{scenario}{conclusion(row)}"
        if row.changed:
            line = f"{shown(row).words}: {scenario}{change(row)}"
        said.append((row.verdict, line))
    if len(found) > _MOST_ANSWERS:
        more = plural(len(found) - _MOST_ANSWERS, "more row")
        said.append((None, f"and {more} changed"))
    return said


def _nothing_changed(report: ComparisonReport) -> list[tuple[Verdict | None, str]]:
    rows = [row for each in report.comparisons for row in each.rows]
    if not rows and report.exit_code == ExitCode.MEASURED:
        return [(Verdict.SAME, "identical code: nothing to measure")]
    if not rows:
        return [(Verdict.INVALID, with_reason("not compared", report.reason))]
    ends = [row.ratio.ends for row in rows if row.ratio and row.ratio.has_interval]
    if not ends:
        return [(row.verdict, conclusion(row)) for row in rows[:_MOST_ANSWERS]]
    bound = excluded(min(low for low, _ in ends), max(high for _, high in ends))
    if all(row.verdict == Verdict.SAME for row in rows):
        return [(Verdict.SAME, f"same: {bound}")]
    unclear = sum(row.verdict == Verdict.INCONCLUSIVE for row in rows)
    if unclear == len(rows):
        return [(Verdict.INCONCLUSIVE, f"inconclusive, neither changed nor the same: {bound}")]
    of_rows = f", {unclear} of {plural(len(rows), 'row')} inconclusive" if unclear else ""
    return [(None, f"no significant change{of_rows}: {bound}")]


def conclusion(row: Row) -> str:
    """A row in a sentence, whether it changed or not."""
    if row.changed:
        return f"{shown(row).words}: {change(row)}"
    if row.ratio is None:
        return with_reason(f"{title(row)}: {row.verdict}", row.reason)
    if row.verdict == Verdict.SAME:
        return f"{title(row)}: same ({interval(row.ratio)})"
    return f"{title(row)}: {shown(row).words} ({interval(row.ratio)} as fast)"


def line_text(line: ChangedLine) -> str:
    """A line of the source with its number and its sign."""
    sign = "-" if line.side == "a" else "+"
    return f"{line.line:>5} {sign} {line.text.expandtabs(4)}"


def environment_lines(comparisons: Sequence[ScenarioComparison]) -> list[str]:
    """Return what else changed than the code; each once, however many scenarios have it."""
    said: dict[str, None] = {}
    for each in comparisons:
        about = [entry for entry in each.findings if entry.code == environment_changed.code]
        said |= dict.fromkeys(lines(about))
    return list(said)


def other_lines(comparison: ScenarioComparison) -> list[str]:
    """Return what rows without a verdict exclude, or why they have none; the other findings."""
    said_above = (environment_changed.code, different_lessons.code)
    others = [entry for entry in comparison.findings if entry.code not in said_above]
    reasons = [
        with_reason(f"{title(row)} {row.verdict}", row.reason)
        for row in comparison.rows
        if row.ratio is None and row.reason and row.verdict != Verdict.WRONG  # said first
    ]
    bounds = [
        conclusion(row)
        for row in comparison.rows
        if row.ratio is not None and row.verdict == Verdict.INCONCLUSIVE
    ]
    if not all(map(_is_quotient, comparison.rows)):
        bounds.append("B/A is of the processes of both sides, not the quotient of their figures")
    return [*reasons, *bounds, *lines(others)]


def _is_quotient(row: Row) -> bool:
    if row.a is None or row.b is None or row.ratio is None:
        return True
    figures = row.a.value, row.b.value
    if row.pairing == Pairing.WITHIN_RUNS:  # they are speedups, of which more is faster
        figures = figures[::-1]
    return is_quotient(row.ratio.value, *figures)


def shared_differences(comparisons: Sequence[ScenarioComparison]) -> list[Difference]:
    """Return what differs in each of several scenarios alike, and is said once."""
    if len(comparisons) < 2:
        return []
    first, *others = comparisons
    return [
        each
        for each in first.differences
        if all(each in comparison.differences for comparison in others)
    ]


def gate_lines(report: ComparisonReport) -> list[tuple[GateOutcome, str]]:
    """A line for each gate that does not hold; one line where all do."""
    gates = report.gates
    several = len(report.comparisons) > 1
    missed: list[tuple[GateOutcome, str]] = []
    for gate in sorted(gates, key=lambda gate: gate.outcome != GateOutcome.FAILS):
        if gate.outcome != GateOutcome.HOLDS:
            scenario = f"{gate.scenario}, " if several else ""
            missed.append((gate.outcome, f"gate {gate.outcome}: {scenario}{gate.words}"))
    if gates and not missed:
        demands = ", ".join(dict.fromkeys(gate.demand for gate in gates))
        return [(GateOutcome.HOLDS, f"gate holds: {demands}, in {plural(len(gates), 'row')}")]
    if len(missed) > _MOST_ANSWERS:
        more = plural(len(missed) - _MOST_ANSWERS, "more row")
        missed[_MOST_ANSWERS:] = [(missed[_MOST_ANSWERS][0], f"and {more}")]
    return missed
