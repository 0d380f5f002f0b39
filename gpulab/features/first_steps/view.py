"""The first steps of fresh processes: what they cost, and the curve down to a settled one."""

from __future__ import annotations

from gpulab.core.units import plural, plus_minus, seconds
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.draw.figure import Figure, Mark, letter_of, scale_around, style_of
from gpulab.features.first_steps.report import SETTLED
from gpulab.report.report import RunReport


def first_steps(report: RunReport) -> Block | None:
    """A row a variant and its curve; None where no first steps were taken."""
    known = [
        (place, variant.name, variant.first_steps) for place, variant in enumerate(report.variants)
    ]
    if not any(curve for _, _, curve in known):
        return None
    table = columns_table()
    table.add_column("first steps", overflow="fold", min_width=7)
    for head in ("build", "step 1", "step 2", "settled", "±", "after", "cost"):
        table.add_column(head, justify="right", no_wrap=True)
    marks = []
    for place, name, curve in known:
        if curve is None:
            continue
        label = Text(f"{letter_of(place)} ", style_of(place)).append(name, "not bold default")
        settled = curve.settled_s
        after = "never" if curve.settled_after is None else plural(curve.settled_after, "step")
        times = [curve.build_s.value, *(step.value for step in curve.steps_s[:2])]
        cells = [seconds(value) for value in times] + [""] * (3 - len(times))
        width = plus_minus(settled)
        cost = seconds(curve.excess_s.value) if curve.excess_s.value else "0"
        table.add_row(label, *cells, seconds(settled.value), width, after, cost)
        marks += [
            Mark(letter_of(place), "", number, step.value, style_of(place))
            for number, step in enumerate(curve.steps_s, 1)
        ]
    processes = min(curve.processes for _, _, curve in known if curve)
    x = scale_around("number of the step", [mark.x for mark in marks], lambda value: f"{value:.0f}")
    y = scale_around("time of a step", [mark.y for mark in marks], seconds)
    legend = (
        f"each step timed by itself, medians over {processes} fresh "
        f"process{'es' * (processes != 1)}; settled: within {SETTLED - 1:.0%} of the last third; "
        "cost: what the steps before took beyond settled ones"
    )
    return Group(
        table,
        "",
        Figure("time of a step", x, y, marks=marks),
        Text(legend, "dim"),
    )
