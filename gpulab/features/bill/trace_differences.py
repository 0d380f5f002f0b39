"""What differs between two recordings: by cause, and by names that changed most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from gpulab.core.text import one_line, plain, short_name
from gpulab.core.units import seconds
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.draw.canvas import fit
from gpulab.features.bill.trace import TraceBill

_MOST_NAMES = 8
_NAME = 40


class TraceDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a cause, or where `of` is not None of one name of it, in the first recording and
    the second: of a step where both have steps, else of all.
    """

    cause: str
    of: str | None
    first_s: float
    second_s: float

    @property
    def change_s(self) -> float:
        return self.second_s - self.first_s


def are_of_steps(first: TraceBill, second: TraceBill) -> bool:
    """Return whether seconds of a step can be compared."""
    return bool(first.steps and second.steps)


def differences_of(first: TraceBill, second: TraceBill) -> list[TraceDifference]:
    """Return all causes and then the names that changed most, the largest change first."""
    causes: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    names: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for side, bill in enumerate((first, second)):
        divisor = bill.steps if are_of_steps(first, second) else 1
        for row in bill.rows:
            causes[row.cause][side] += row.seconds / divisor
            names[row.cause, row.of][side] += row.seconds / divisor
    of_causes = [
        TraceDifference(cause=cause, of=None, first_s=taken[0], second_s=taken[1])
        for cause, taken in causes.items()
    ]
    of_names = [
        TraceDifference(cause=cause, of=of, first_s=taken[0], second_s=taken[1])
        for (cause, of), taken in names.items()
        if of
    ]
    return [*_largest(of_causes), *_largest(of_names)[:_MOST_NAMES]]


def _largest(found: Sequence[TraceDifference]) -> list[TraceDifference]:
    return sorted(found, key=lambda each: -abs(each.change_s))


def differences_table(
    first: TraceBill, second: TraceBill, found: Sequence[TraceDifference]
) -> Block:
    """Return the table of what differs, and why the two may not be comparable."""
    table = columns_table()
    for name in ("first", "second", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("cause", overflow="fold", min_width=24)
    table.add_column("of", overflow="fold")
    for each in found:
        sign = "-" if each.change_s < 0 else "+"
        name = "" if each.of is None else fit(short_name(one_line(plain(each.of))), _NAME)
        times = seconds(each.first_s), seconds(each.second_s), sign + seconds(abs(each.change_s))
        table.add_row(*times, Text(each.cause), Text(name))
    unit = "of a step" if are_of_steps(first, second) else "in all: not both mark steps"
    blocks: list[Block] = [Text(f"what differs, {unit}"), table]
    if (first.busy_s is None) != (second.busy_s is None):
        blocks.append(
            Text("one has a timeline of a device and the other none: not comparable", "yellow")
        )
    return Group(*blocks)
