"""How often each rule was right on planted cases and wrong on their twins, as
`benchmarks/findings.py` found it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

KEPT = Path(__file__).with_name("record.json")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Of one rule: in how many of the `planted` cases its finding came first, and how many twins it
    accused. Of the `measured` cases, in which the same work was timed without the bottleneck, how
    many gained what was promised (`inside` the bounds), and the median of gained over the most that
    was promised.
    """

    number: int
    code: str
    planted: int
    right: int
    wrong: int
    measured: int
    inside: int
    gained: float | None
    on: list[str]


def records() -> list[Record]:
    return msgspec.json.decode(KEPT.read_bytes(), type=list[Record])


def record_table() -> RenderableType:
    """A row for each rule: right of planted cases, twins accused of all, and gained over promised
    (inside the bounds of those that were measured).
    """
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("rule")
    for head in ("right", "twins", "gained"):
        table.add_column(head, justify="right")
    table.add_column("on")
    for each in records():
        if not each.planted:
            table.add_row(Text(f"{each.number} {each.code}"), "-", "-", "-", "not measured")
            continue
        gained = "-"
        if each.gained is not None:
            gained = f"{each.gained:.2f} ({each.inside}/{each.measured})"
        table.add_row(
            Text(f"{each.number} {each.code}"),
            f"{each.right} of {each.planted}",
            f"{each.wrong} of {each.planted}",
            gained,
            ", ".join(each.on),
        )
    return table
