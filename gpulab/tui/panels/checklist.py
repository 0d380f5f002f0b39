"""The checklist of a run: questions of performance guides, answered from what was measured."""

from __future__ import annotations

from collections.abc import Hashable

from gpulab.draw.blocks import Block, Text
from gpulab.features import needed
from gpulab.session.run import Run
from gpulab.tui.panels.tabs import Selection
from gpulab.tui.status import before_a_run, in_the_middle


def content(selection: Selection) -> Block:
    run = selection.run
    if run is None:
        return in_the_middle(before_a_run(selection.row, selection.age), selection.layout.size)
    if not run.ended:
        return Text("The checklist is answered when the run has ended.", "dim")
    drawn: Block = needed("findings.checklist_view").checklists(run.report)
    return drawn


def changing(run: Run) -> Hashable:
    return run.source.path, run.ended
