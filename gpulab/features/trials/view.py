"""Tables of what was tried: fixes with what each gained, and parts with what less of each would
gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpulab.core.estimate import Estimate
from gpulab.core.jobs import StepPart
from gpulab.core.statuses import Verdict
from gpulab.core.text import one_line
from gpulab.core.units import duration, interval, seconds, times
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table, rows_table
from gpulab.draw.styles import STYLES, with_star
from gpulab.features.trials.fixes import gaining
from gpulab.features.trials.parts import MAIN
from gpulab.features.trials.result import (
    ALL_TOGETHER,
    FixReport,
    PartReport,
    TrialsReport,
    TriedReport,
    WhatIfReport,
)
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.stats.verdicts import in_table, shown

_SLOPE = "slope 1: on the critical path; 0: hidden. "


def tried(report: RunReport, together: RunReport | None = None) -> Block | None:
    """A row for each fix that was tried, then one with all that gained; below it why others do not
    apply, and what ran together. None where no fix was tried.
    """
    fixes: Sequence[FixReport] = report.get("fixes") or ()
    if not fixes:
        return None
    rows = [fix for fix in fixes if not fix.why_not]
    rows += together.fixes if together else []
    return _apart(
        [_fixes(rows, quick=report.quick)],
        [Text(line) for line in _reasons(rows)],
        _others("do not apply here", [(fix.name, fix.why_not) for fix in fixes]),
        [Text(line) for line in _what_ran_together(report, together)],
    )


def delayed(report: RunReport, _: RunReport | None = None) -> Block | None:
    """A row for each part that was delayed; below them why others were not, and what it cost. None
    where no part was delayed.
    """
    found: WhatIfReport | None = report.get("what_if")
    if found is None:
        return None
    return _apart([*_parts(found), _cost(found)], _not_delayed(found))


def trials(report: RunReport) -> Block | None:
    """What was tried in the running steps of a program, in two tables; None where nothing was."""
    found: TrialsReport | None = report.get("trials")
    if found is None:
        return None
    words = (
        f"{_SLOPE}Each part was delayed in every other window of the running steps: their times "
        "and the bill include the delays"
    )
    delays = _parts(found)
    if delays:
        delays.append(Text(words, "dim"))
    return Group("", _apart(delays, _not_delayed(found), _switches(found.fixes)))


def part_name(part: PartReport | StepPart) -> str:
    """With what it is, and where it runs beside the step's own thread."""
    name = f"{part.kind} {part.name}" if part.kind == "phase" else part.name
    return name if part.lane in ("", MAIN) else f"{name} ({part.lane})"


def _apart(*groups: Sequence[Block]) -> Group:
    """Groups of blocks below each other, an empty line between them."""
    blocks: list[Block] = []
    for group in filter(None, groups):
        blocks += ["", *group]
    return Group(*blocks[1:])


def _what_ran_together(report: RunReport, together: RunReport | None) -> Iterable[str]:
    """The fixes that gained and were tried together, or why there was nothing to try; nothing where
    their run is not known.
    """
    names = [fix.name for fix in gaining(report.fixes)]
    if together is not None:
        yield f"{ALL_TOGETHER}: {', '.join(names)}"
    elif report.timed and len(names) <= 1:
        what = names[0] if names else "none"
        yield f"fixes that gain: {what}, so there is nothing to try together"


def _fixes(rows: Sequence[FixReport], *, quick: bool) -> Table:
    table = _fixes_table("gained")
    table.add_column("error /allowed", justify="right")
    table.add_column("verdict", no_wrap=True)
    for fix in rows:
        gained = "" if fix.speedup is None else times(fix.speedup)
        verdict = Text("not run")
        if fix.verdict is not None:
            verdict = Text(with_star(in_table(fix), quick=quick), STYLES[fix.verdict])
        error = "" if fix.error is None else f"{fix.error:.1e}"
        if error and fix.tolerance is not None:
            error += f" /{fix.tolerance:.0e}"
        table.add_row(fix.name, gained, interval(fix.speedup), error, verdict)
    return table


def _fixes_table(head: str) -> Table:
    """With columns of a fix and of what it gained."""
    table = columns_table()
    table.add_column("fix", no_wrap=True)
    for each in (head, "99 % interval"):
        table.add_column(each, justify="right", no_wrap=True)
    return table


def _reasons(rows: Sequence[FixReport]) -> Iterable[str]:
    for fix in rows:
        if fix.reason is not None and fix.verdict != Verdict.FASTER:
            yield f"{fix.name}: {one_line(sentence(fix.reason))}"
        elif fix.verdict == Verdict.INCONCLUSIVE:
            yield f"{fix.name}: {shown(fix).words}"


def _switches(fixes: Sequence[TriedReport]) -> list[Block]:
    if not fixes:
        return []
    table = _fixes_table("times")
    table.add_column("in effect", no_wrap=True)
    lines = []
    for fix in fixes:
        words = fix.why_not or fix.alters
        if fix.pairs:
            proof = f"{fix.in_effect} of {fix.pairs} windows: {fix.was} -> {fix.now}"
            times_faster = "" if fix.speedup is None else times(fix.speedup)
            table.add_row(fix.name, times_faster, interval(fix.speedup), proof)
        elif not fix.why_not:
            words = "no pair of windows was measured"
        if words:
            lines.append(Text(f"{fix.name}: {words}", "dim"))
    return [table, *lines]


def _parts(found: WhatIfReport | TrialsReport) -> list[Block]:
    """Return the table of the parts that were delayed; nothing where there was none."""
    delayed = [part for part in found.parts if not part.why_not]
    if not delayed:
        return []
    table = columns_table()
    table.add_column("part", overflow="fold", min_width=9)
    for head in ("share", "slope", "99 % interval", f"{found.less:.0%} less", "99 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    for part in delayed:
        table.add_row(
            part_name(part),
            "" if part.share is None else f"{part.share:.1%}",
            "" if part.slope is None else f"{part.slope.value:.2f}",
            _interval(part.slope, ".2f"),
            "" if part.gain is None else f"{part.gain.value:.1%}",
            _interval(part.gain, ".1%"),
        )
    return [table]


def _not_delayed(found: WhatIfReport | TrialsReport) -> list[Block]:
    reasons = [(part_name(part), part.why_not) for part in found.parts]
    return _others("cannot be delayed", reasons)


def _others(title: str, names: Sequence[tuple[str, str]]) -> list[Block]:
    """Why those were not tried that have a reason."""
    table = rows_table()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    others = [(name, why_not) for name, why_not in names if why_not]
    for name, why_not in others:
        table.add_row(Text(name, "dim"), Text(why_not, "dim"))
    return [Text(title, "bold"), table] if others else []


def _interval(estimate: Estimate | None, form: str) -> str:
    if estimate is None or not estimate.has_interval:
        return ""
    low, high = estimate.ends
    return f"{low:{form}} to {high:{form}}"


def _cost(report: WhatIfReport) -> Text:
    text = Text(
        f"{_SLOPE}{report.less:.0%} less: what the step gains where the part takes "
        f"{report.less:.0%} less. Each part was delayed by {seconds(report.delay_s)} a step"
    )
    if report.hooks_cost is not None:
        text.append(f"; the hooks add {report.hooks_cost.value:.1%}")
        if ends := _interval(report.hooks_cost, ".1%"):
            text.append(f" ({ends})")
    return text.append(f"; {duration(report.elapsed_s)} in all")
