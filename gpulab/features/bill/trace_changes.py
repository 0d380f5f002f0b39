"""What differs between two recordings: by cause, and by the names that changed most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from gpulab.core.text import one_line, plain, short_name
from gpulab.core.units import seconds
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.draw.canvas import fit_middle
from gpulab.features.bill.trace import TraceBill

_MOST_NAMES, _NAME = 8, 40


class TraceChange(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a cause, or where `of` is not None of one name of it, in the first recording and
    the second: of a step where both have steps, else of all.
    """

    cause: str
    of: str | None
    first_s: float
    second_s: float


def changes_of(first: TraceBill, second: TraceBill) -> list[TraceChange]:
    """Return all causes and then the names that changed most, the largest change first; nothing
    where one has a timeline of a device and the other none, as what the other lacks is not 0.
    """
    if (first.busy_s is None) != (second.busy_s is None):
        return []
    spent: dict[tuple[str, str | None], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for side, bill in enumerate((first, second)):
        for row in bill.rows:
            taken = row.seconds / (bill.steps if first.steps and second.steps else 1)
            spent[row.cause, None][side] += taken
            if row.of:
                spent[row.cause, row.of][side] += taken
    order = sorted(spent, key=lambda key: (key[1] is not None, -abs(spent[key][1] - spent[key][0])))
    causes = sum(of is None for _, of in order)
    return [
        TraceChange(cause=cause, of=of, first_s=times[0], second_s=times[1])
        for cause, of in order[: causes + _MOST_NAMES]
        for times in [spent[cause, of]]
    ]


def changes_table(bills: Sequence[TraceBill], changes: Sequence[TraceChange]) -> Block:
    """Return the table of what differs, or why nothing can be compared."""
    if not changes:
        doubt = "one has a timeline of a device and the other none: they cannot be compared"
        return Text(doubt, "yellow")
    table = columns_table()
    for name in ("first", "second", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("cause", overflow="fold", min_width=24)
    table.add_column("of", overflow="fold")
    for each in changes:
        change_s = each.second_s - each.first_s
        change = f"{'-' if change_s < 0 else '+'}{seconds(abs(change_s))}"
        times = seconds(each.first_s), seconds(each.second_s), change
        name = fit_middle(short_name(one_line(plain(each.of or ""))), _NAME)
        table.add_row(*times, Text(each.cause), Text(name))
    of_steps = all(bill.steps for bill in bills)
    unit = "of a step" if of_steps else "in all, as not both have steps"
    return Group(Text(f"what differs, {unit}"), table)
