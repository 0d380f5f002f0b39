"""The bill of a step: a line in short, or its rows in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpulab.core.payloads import USEFUL
from gpulab.core.text import short_name
from gpulab.core.units import seconds
from gpulab.draw.bars import WORDS
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table
from gpulab.draw.canvas import fit
from gpulab.features.bill.result import BillRow
from gpulab.features.bill.view import where
from gpulab.report.report import VariantReport

_MOST = 12
_LEAST = 0.01
_OPERATION = 38
HOW = "busy time divided by recorded operations, the rest on a CPU by samples of lines"


def lines(variant: VariantReport) -> list[Text]:
    """Return the largest rows in one line."""
    rows: list[BillRow] = variant.get("step_bill") or []
    step_s = sum(row.seconds for row in rows)
    if not step_s:
        return []
    said = [
        f"{row.seconds / step_s:.0%} {words(row)}"
        for row in rows[:3]
        if row.seconds > _LEAST * step_s
    ]
    return [Text(f"{variant.name} → ", "dim").append("; ".join(said), "not dim")]


def steps(variants: Iterable[VariantReport], most: int = _MOST) -> Block | None:
    """Return a table of each step that has a bill; None where none has."""
    tables = [table for variant in variants for table in _table(variant, most)]
    return Group(*tables, Text(HOW, "dim")) if tables else None


def _table(variant: VariantReport, most: int) -> Iterator[Block]:
    rows: list[BillRow] = variant.get("step_bill") or []
    step_s = sum(row.seconds for row in rows)
    if not step_s:
        return

    def of_width(width: int) -> Iterator[Block]:
        table = columns_table()
        table.add_column("seconds", justify="right", no_wrap=True)
        table.add_column("share", justify="right", no_wrap=True)
        table.add_column("cause", no_wrap=True)
        has_lines = any(row.file for row in rows[:most])
        table.add_column("line of the program" * has_lines, overflow="fold", min_width=16)
        for row in rows[:most]:
            cause = fit(_cause(row), max(_OPERATION, width // 2))
            table.add_row(seconds(row.seconds), f"{row.seconds / step_s:.1%}", cause, where(row))
        left_s = sum(row.seconds for row in rows[most:])
        if left_s:
            words = Text(f"{len(rows) - most} smaller rows", "dim")
            table.add_row(seconds(left_s), f"{left_s / step_s:.1%}", words, "")
        yield table

    yield Text(f"where the {seconds(step_s)} of a step of {variant.name} go", "bold")
    yield Fitted(of_width)


def _cause(row: BillRow) -> str:
    if row.of:
        return short_name(row.of)
    if not row.cause:
        return "at the line"
    return WORDS.get(row.cause, row.cause)


def words(row: BillRow) -> str:
    """Return what takes the time, and where."""
    place = where(row)
    if row.of or row.cause == USEFUL:
        return (
            f"{fit(_cause(row), _OPERATION)} at {place}" if place else fit(_cause(row), _OPERATION)
        )
    return f"{_cause(row)} {place}".replace("at the line ", "at ").strip()
