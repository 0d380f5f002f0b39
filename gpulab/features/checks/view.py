"""Whether a comparison may be believed: a line with its grade, and the list of the checks behind
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.statuses import CheckState, Grade
from gpulab.core.units import plural
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence, short_sentence
from gpulab.stats.comparison import Check, Comparison, Trust

_MOST_NAMES = 3
_STYLES = {Grade.VERIFIED: "green", Grade.UNCHECKED: "yellow", Grade.DOUBTFUL: "yellow"}
_STATE_STYLES = {
    CheckState.PASSED: "green",
    CheckState.DOUBTFUL: "yellow",
    CheckState.FAILED: "bold red",
    CheckState.NOT_RUN: "dim",
}


def doubts(report: RunReport) -> list[tuple[str, str]]:
    """Return those lines of `grades` that are about no verified comparisons."""
    verified = _STYLES[Grade.VERIFIED]
    return [(line, style) for line, style in grades(report) if style != verified]


def grades(report: RunReport) -> list[tuple[str, str]]:
    """A line a grade, which names the comparisons that have it for the same reasons, with its
    style.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for comparison in report.first_comparisons:
        trust = comparison.trust
        if trust is not None and trust.grade is not None:
            line = _grade(comparison, trust), _STYLES[trust.grade]
            names.setdefault(line, []).append(comparison.variant)
    alike = len(names) == 1
    return [
        (f"{_all(compared, alike=alike)} {text}", style)
        for (text, style), compared in names.items()
    ]


def _all(names: Sequence[str], *, alike: bool) -> str:
    if alike and len(names) > _MOST_NAMES:
        return f"all {len(names)} comparisons"
    return ", ".join(names)


def checks(report: RunReport) -> Block | None:
    """Every check of every comparison, and what an interval means where there are several; None
    without comparisons.
    """
    # further comparisons of a variant rest on the same checks
    compared = report.first_comparisons
    listed = [(each.variant, each.trust) for each in compared if each.trust]
    if not listed:
        return None
    table = columns_table()
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what it showed", overflow="fold")
    for place, first in enumerate(listed[0][1].checks):
        rows = _rows([(name, trust.checks[place]) for name, trust in listed])
        for number, (check, names) in enumerate(rows):
            text = sentence(check.result) if check.result else ""
            named = f"{', '.join(names)}: " if len(names) < len(listed) else ""
            kind = "" if number else first.kind.value
            table.add_row(kind, Text(check.state, _STATE_STYLES[check.state]), f"{named}{text}")
    several = several_comparisons(report)
    return Group(table, Text(several, "dim")) if several else table


def several_comparisons(report: RunReport) -> str:
    """Return what the confidence of one comparison means for all; nothing without one."""
    method = report.method
    if method.comparisons < 2:
        return ""
    one, everyone = 1 - method.confidence, method.familywise
    return (
        f"{method.comparisons} comparisons: the interval of each misses in {one:.0%} of runs at "
        f"most, any of them in {everyone:.0%}"
    )


def _grade(comparison: Comparison, trust: Trust) -> str:
    if trust.grade == Grade.VERIFIED:
        return f"{trust.grade}: {plural(trust.ran, 'check')} ran"
    own = {reason.code: reason for reason in trust.reasons if reason.variant == comparison.variant}
    reasons = [own.get(reason.code, reason) for reason in trust.reasons]
    return f"{trust.grade}: {', '.join(dict.fromkeys(map(short_sentence, reasons)))}"


def _rows(checked: Sequence[tuple[str, Check]]) -> list[tuple[Check, list[str]]]:
    """Checks that showed the same are one row."""
    rows: list[tuple[Check, list[str]]] = []
    for name, check in checked:
        same = next((names for other, names in rows if other == check), None)
        if same is None:
            rows.append((check, [name]))
        else:
            same.append(name)
    return rows
