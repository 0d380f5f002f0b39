"""The bills of recordings in tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpulab.core.text import one_line, plain, short_name
from gpulab.core.units import plural, seconds
from gpulab.draw.blocks import Block, Fitted, Group, Table, Text, columns_table
from gpulab.draw.canvas import fit_middle
from gpulab.features.bill.trace import IDLE, TraceBill

if TYPE_CHECKING:
    from gpulab.features.bill.trace_ranks import RankWaits

_MOST_ROWS, _MOST_FILES = 15, 2
_NAME, _BESIDE = 30, 48
"""Cells of a name at least, and of all that stands beside it."""


def trace_bills(bills: Sequence[TraceBill], ranks: Sequence[RankWaits]) -> Block:
    """Return the bill of each, or of many a row for each, and who waits for whom."""
    blocks: list[Block] = [_overview(bills)] if len(bills) > _MOST_FILES else []
    for bill in bills[:_MOST_FILES]:
        blocks += ["", *_bill(bill)]
    if ranks:
        blocks += ["", _ranks(ranks)]
    return Group(*blocks[not blocks[0] :])


def _bill(bill: TraceBill) -> list[Block]:
    heading = f"where the {seconds(bill.wall_s)} of {bill.file} went"
    if bill.busy_s is not None:
        heading += f": {bill.device} was busy {bill.busy_s / bill.wall_s:.1%}"
    blocks: list[Block] = [Text(plain(heading)), Fitted(partial(_table, bill))]
    if bill.step_s is not None:
        mark = f" ({bill.step_mark})" if bill.step_mark else " marked"
        words = f"{plural(bill.steps, 'step')}{mark}, {seconds(bill.step_s)} in median"
        if bill.step_mark and bill.every_s not in (None, bill.step_s):
            words += f", one begins every {seconds(bill.every_s)}"
        blocks.append(Text(plain(words)))
    if bill.note:
        blocks.append(Text(plain(bill.note), "yellow"))
    return blocks


def _table(bill: TraceBill, width: int) -> Iterator[Block]:
    table = columns_table()
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("cause", overflow="fold", min_width=24)
    table.add_column("of", overflow="fold")
    room = max(_NAME, width - _BESIDE)
    for row in bill.rows[:_MOST_ROWS]:
        share = f"{row.seconds / bill.wall_s:.1%}"
        name = fit_middle(short_name(one_line(plain(row.of))), room)
        table.add_row(seconds(row.seconds), share, Text(row.cause), Text(name))
    rest = bill.rows[_MOST_ROWS:]
    if rest:
        left_s = sum(row.seconds for row in rest)
        words = Text(plural(len(rest), "more row"), "dim")
        table.add_row(seconds(left_s), f"{left_s / bill.wall_s:.1%}", words, "")
    yield table


def _ranks(ranks: Sequence[RankWaits]) -> Block:
    table = columns_table()
    for name in ("recording", "waiting", "transferring", "came last"):
        table.add_column(name, overflow="fold", justify="left" if name == "recording" else "right")
    for rank in ranks:
        last = f"{rank.last} of {rank.collectives}"
        waiting, transferring = seconds(rank.waiting_s), seconds(rank.transferring_s)
        table.add_row(Text(plain(rank.file)), waiting, transferring, last)
    how = "the shortest kernel of a collective is its transfer, on the rank that came last"
    return Group(Text("collectives of the ranks"), table, Text(how, "dim"))


def _overview(bills: Sequence[TraceBill]) -> Table:
    table = columns_table()
    for name in ("recording", "seconds", "busy", "collectives", "most of the idle time"):
        table.add_column(name, overflow="fold", justify="left" if name[0] in "rm" else "right")
    for bill in bills:
        causes: dict[str, float] = defaultdict(float)
        for row in bill.rows:
            causes[row.cause] += row.seconds
        idle = {cause: taken for cause, taken in causes.items() if cause.startswith(IDLE)}
        most = max(idle, key=lambda cause: idle[cause], default="")
        busy = "" if bill.busy_s is None else f"{bill.busy_s / bill.wall_s:.1%}"
        collectives = f"{causes['device in collectives'] / bill.wall_s:.1%}"
        words = most.removeprefix(f"{IDLE}: ")
        if most:
            words += f" {idle[most] / bill.wall_s:.1%}"
        table.add_row(Text(plain(bill.file)), seconds(bill.wall_s), busy, collectives, Text(words))
    return table
