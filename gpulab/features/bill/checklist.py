"""The questions with which performance guides end, as far as the rows of a bill answer them: with
the share of the time, and where most of it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.core.payloads import COPY, SYNC, USEFUL
from gpulab.draw.blocks import Block, Group, Text, rows_table
from gpulab.features.bill.result import BillReport, BillRow
from gpulab.features.bill.step_view import words
from gpulab.features.bill.view import name_of
from gpulab.report.report import RunReport

_QUESTIONS: Sequence[tuple[str, frozenset[str]]] = (
    ("How much does it compute?", frozenset({USEFUL, "torch", "backward", "optimizer"})),
    ("Does it wait for data?", frozenset({"data wait", "data", "start an epoch"})),
    ("Does the host wait for the device?", frozenset({SYNC, "sync"})),
    ("Do copies take time?", frozenset({COPY, "copies"})),
    ("Does the device wait for launches?", frozenset({"launch-bound"})),
    ("Does it wait for other ranks?", frozenset({"communication", "collective"})),
    ("Does it allocate memory?", frozenset({"alloc"})),
    ("Does Python run outside of torch?", frozenset({"", "outside of operations"})),
    ("Does it compile?", frozenset({"compile", "autotune"})),
    ("Does it sleep or wait for others?", frozenset({"waiting", "preempted"})),
)


def checklists(report: RunReport) -> Block:
    """Return the questions, answered for each step, or each process, that has a bill."""
    bills = [(each.name, each.get("step_bill") or []) for each in report.variants]
    part: BillReport | None = report.get("bill")
    bills += [(name_of(each), each.rows) for each in part.bills] if part else []
    answered = [block for name, rows in bills if rows for block in _answers(name, rows)]
    return Group(*answered) if answered else Text("No checklist: no step was recorded.", "dim")


def _answers(name: str, rows: Sequence[BillRow]) -> Iterator[Block]:
    whole_s = sum(row.seconds for row in rows)
    table = rows_table()
    for question, causes in _QUESTIONS:
        found = [row for row in rows if row.cause in causes and row.seconds > 0]
        if found:
            share = sum(row.seconds for row in found) / whole_s
            most = words(found[0])
            if len(found) > 1:
                most += f" ({found[0].seconds / whole_s:.1%})"
            table.add_row(Text(question), Text(f"{share:.1%}"), Text(most))
    yield from ("", Text(f"checklist of {name}", "bold"), table)
