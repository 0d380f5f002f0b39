"""What was tried in the running steps of a program, in two tables."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.units import interval, times
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.features.trials.result import TrialsReport, TriedReport
from gpulab.features.trials.view import not_delayed, parts_table
from gpulab.report.report import RunReport


def trials(report: RunReport) -> Block | None:
    """Return the tables; None where nothing was tried."""
    found: TrialsReport | None = report.get("trials")
    if found is None:
        return None
    blocks: list[Block] = []
    if found.parts:
        words = (
            "slope 1: on the critical path; 0: hidden. Each part was delayed in every other window "
            "of the running steps: their times and the bill include the delays"
        )
        blocks += ["", parts_table(found.parts, found.less), Text(words, "dim")]
        blocks += not_delayed(found.parts)
    if found.fixes:
        blocks += ["", *_fixes(found.fixes)]
    return Group(*blocks)


def _fixes(fixes: Sequence[TriedReport]) -> list[Block]:
    table = columns_table()
    table.add_column("fix", no_wrap=True)
    for head in ("times", "99 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("in effect", no_wrap=True)
    lines = []
    for fix in fixes:
        words = fix.alters
        if fix.why_not or not fix.pairs:
            words = fix.why_not or "no pair of windows was measured"
        if words:
            lines.append(Text(f"{fix.name}: {words}", "dim"))
        if not fix.pairs:
            continue
        proof = f"{fix.in_effect} of {fix.pairs} windows: {fix.was} -> {fix.now}"
        times_faster = "" if fix.speedup is None else times(fix.speedup)
        table.add_row(fix.name, times_faster, interval(fix.speedup), proof)
    return [table, *lines]
