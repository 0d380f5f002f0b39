"""The roofline of a run, live: points move as rounds come in."""

from __future__ import annotations

from gpulab.draw.blocks import Block, Group, Text
from gpulab.features.roofline.figure import families, first_family
from gpulab.features.roofline.report import roofline_of, roofline_of_operations
from gpulab.features.roofline.view import limits, reasons, roofline_view
from gpulab.report.report import RunReport
from gpulab.session.run import Run
from gpulab.tui.panels.tabs import Selection
from gpulab.tui.status import before_a_run, in_the_middle, no_roofline


def content(selection: Selection) -> Block:
    run = selection.run
    if run is None:
        return in_the_middle(before_a_run(selection.row, selection.age), selection.size)
    roofline = roofline_of(run.report)
    if roofline is None:
        return Group(no_roofline(), limits(run.report.variants))
    width, height = selection.size
    operations = _operations(run.report, width, height)
    causes = limits([variant for variant in run.report.variants if not variant.roofline])
    if operations and not roofline.points:
        return Group(*operations, causes)
    drawn = roofline_view(roofline, width=width, height=height, family=selection.family)
    hint = "f draws another type of numbers\n" if len(families(roofline)) > 1 else ""
    return Group(drawn, Text(hint, "dim"), reasons(roofline.points), causes, *operations)


def _operations(report: RunReport, width: int, height: int) -> list[Block]:
    """The operations of each profiled variant below the roofs, and what limits each."""
    parts: list[Block] = []
    for variant in report.variants:
        roofline = roofline_of_operations(report, variant.name)
        if roofline is None:
            continue
        head = Text(f"operations of {variant.name}, derived from shapes and times", "bold")
        drawn = roofline_view(roofline, width=width, height=height - 1)
        parts += [head, drawn, Text(), reasons(roofline.points)]
    return parts


def has_families(run: Run) -> bool:
    """Return whether there is another type of numbers to draw."""
    roofline = roofline_of(run.report)
    return roofline is not None and len(families(roofline)) > 1


def next_family(run: Run, current: str | None) -> str | None:
    """The type of numbers to draw after the current one; the same where there is no other."""
    roofline = roofline_of(run.report)
    if roofline is None:
        return current
    choices = families(roofline)
    if len(choices) < 2:
        return current
    drawn = current if current in choices else first_family(roofline)
    return choices[(choices.index(drawn) + 1) % len(choices)]
