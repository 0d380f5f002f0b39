"""The bill of a run: where the seconds of each step went, or those of a program's processes."""

from __future__ import annotations

from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import part
from gpulab.tui.panels.tabs import Selection
from gpulab.tui.status import before_a_run, in_the_middle


def content(selection: Selection) -> Block:
    run = selection.run
    if run is None:
        return in_the_middle(before_a_run(selection.row, selection.age), selection.size)
    report = run.report
    steps = part("bill.step_view:steps", report.variants)
    bill = steps or part("bill.view:bill", report)
    if bill is None:
        return Text("No step was recorded yet: the profile of a run does.", "dim")
    return Group(bill, part("bill.checklist:checklists", report))
