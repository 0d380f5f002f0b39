"""The table of parts: their shares, whether they are on the critical path, what less would gain."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.estimate import Estimate
from gpulab.core.jobs import StepPart
from gpulab.core.units import duration, seconds
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table, rows_table
from gpulab.features.trials.parts import MAIN
from gpulab.features.trials.result import PartReport, WhatIfReport
from gpulab.report.report import RunReport

NOTHING_TO_DELAY = (
    "no part of this step can be delayed: mark them with lab.phase(NAME), or name an operation, "
    "such as --what-if aten::mm"
)


def delayed(report: RunReport, _: RunReport | None = None) -> Block | None:
    """None where no part was delayed."""
    found = report.get("what_if")
    return None if found is None else what_if(found)


def what_if(report: WhatIfReport) -> Block:
    """A row for each part that was delayed; below them why others were not, and what it cost."""
    table = parts_table(report.parts, report.less)
    return Group(table, "", _cost(report), *not_delayed(report.parts))


def parts_table(parts: Sequence[PartReport], less: float) -> Table:
    """Return a row for each part that was delayed."""
    table = columns_table()
    table.add_column("part", overflow="fold", min_width=9)
    for head in ("share", "slope", "99 % interval", f"{less:.0%} less", "99 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    for part in parts:
        if part.why_not:
            continue
        table.add_row(
            part_name(part),
            "" if part.share is None else f"{part.share:.1%}",
            "" if part.slope is None else f"{part.slope.value:.2f}",
            _interval(part.slope, ".2f"),
            "" if part.gain is None else f"{part.gain.value:.1%}",
            _interval(part.gain, ".1%"),
        )
    return table


def not_delayed(parts: Sequence[PartReport]) -> list[Block]:
    """Return why other parts were not."""
    others = [part for part in parts if part.why_not]
    if not others:
        return []
    reasons = rows_table()
    reasons.add_column(no_wrap=True)
    reasons.add_column(overflow="fold")
    for part in others:
        reasons.add_row(Text(part_name(part), "dim"), Text(part.why_not, "dim"))
    return ["", Text("cannot be delayed", "bold"), reasons]


def part_name(part: PartReport | StepPart) -> str:
    """With what it is, and where it runs beside the step's own thread."""
    name = f"{part.kind} {part.name}" if part.kind == "phase" else part.name
    return name if part.lane in ("", MAIN) else f"{name} ({part.lane})"


def _interval(estimate: Estimate | None, form: str) -> str:
    if estimate is None or not estimate.has_interval:
        return ""
    low, high = estimate.ends
    return f"{low:{form}} to {high:{form}}"


def _cost(report: WhatIfReport) -> Text:
    text = Text(
        f"slope 1: on the critical path; 0: hidden. {report.less:.0%} less: what the step gains "
        f"where the part takes {report.less:.0%} less. "
    )
    text.append(f"Each part was delayed by {seconds(report.delay_s)} a step")
    if report.hooks_cost is not None:
        text.append(f"; the hooks add {report.hooks_cost.value:.1%}")
        if interval := _interval(report.hooks_cost, ".1%"):
            text.append(f" ({interval})")
    return text.append(f"; {duration(report.elapsed_s)} in all")
