"""The table of fixes: what each gained, and whether the numbers stay what they are."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.statuses import Verdict
from gpulab.core.text import one_line
from gpulab.core.units import interval, times
from gpulab.draw.blocks import Block, Group, Text, columns_table, rows_table
from gpulab.draw.styles import STYLES, with_star
from gpulab.features.trials.declarations import gaining
from gpulab.features.trials.fix_result import ALL_TOGETHER, FixReport
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.stats.verdicts import in_table, shown


def tried(report: RunReport, together: RunReport | None = None) -> Block | None:
    """The table, and what ran together; None where no fix was tried."""
    if not report.get("fixes"):
        return None
    parts = [fixes(report, together)]
    if words := what_ran_together(report, together):
        parts += ["", Text(words)]
    return Group(*parts)


def fixes(report: RunReport, together: RunReport | None = None) -> Block:
    """A row for each fix that was tried, then one with all that gained; below it why others do not
    apply.
    """
    tried = [fix for fix in report.fixes if not fix.why_not]
    rows = [*tried, *(together.fixes if together else [])]
    parts: list[Block] = [_table(rows, quick=report.quick)]
    for part in (_reasons(rows), _others(report.fixes)):
        if part is not None:
            parts += ["", part]
    return Group(*parts)


def what_ran_together(report: RunReport, together: RunReport | None) -> str:
    """The fixes that gained and were tried together, or why there was nothing to try; empty where
    their run is not known.
    """
    names = [fix.name for fix in gaining(report.fixes)]
    if together is not None:
        return f"{ALL_TOGETHER}: {', '.join(names)}"
    if not report.timed or len(names) > 1:
        return ""
    what = names[0] if names else "none"
    return f"fixes that gain: {what}, so there is nothing to try together"


def _table(rows: Sequence[FixReport], *, quick: bool) -> Block:
    table = columns_table()
    table.add_column("fix", no_wrap=True)
    table.add_column("gained", justify="right", no_wrap=True)
    table.add_column("99 % interval", justify="right", no_wrap=True)
    table.add_column("error /allowed", justify="right")
    table.add_column("verdict", no_wrap=True)
    for fix in rows:
        gained = "" if fix.speedup is None else times(fix.speedup)
        verdict = Text("not run" if fix.verdict is None else "")
        if fix.verdict is not None:
            verdict = Text(with_star(in_table(fix), quick=quick), STYLES[fix.verdict])
        table.add_row(fix.name, gained, interval(fix.speedup), _error(fix), verdict)
    return table


def _error(fix: FixReport) -> str:
    if fix.error is None:
        return ""
    allowed = "" if fix.tolerance is None else f" /{fix.tolerance:.0e}"
    return f"{fix.error:.1e}{allowed}"


def _reasons(rows: Sequence[FixReport]) -> Block | None:
    lines = []
    for fix in rows:
        if fix.reason is not None and fix.verdict != Verdict.FASTER:
            lines.append(Text(f"{fix.name}: {one_line(sentence(fix.reason))}"))
        elif fix.verdict == Verdict.INCONCLUSIVE:
            lines.append(Text(f"{fix.name}: {shown(fix).words}"))
    return Group(*lines) if lines else None


def _others(rows: Sequence[FixReport]) -> Block | None:
    table = rows_table()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    others = [fix for fix in rows if fix.why_not]
    for fix in others:
        table.add_row(Text(fix.name, "dim"), Text(fix.why_not, "dim"))
    return Group(Text("do not apply here", "bold"), table) if others else None
