"""The operations that a step is made of: a column a variant, those that take longest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from rich.cells import cell_len

from gpulab.core.statuses import Per
from gpulab.core.units import seconds
from gpulab.draw.blocks import Block, Fitted, Table, Text, columns_table
from gpulab.draw.table import first_and_last
from gpulab.features.goodput.analysis import by_inputs
from gpulab.features.goodput.events import Operation
from gpulab.features.goodput.operation_table import (
    MOST_ROWS,
    OperationTable,
    TableChoice,
    short_name,
)
from gpulab.report.report import RunReport, VariantReport

_FIGURES = (("calls", "self", "share"), ("self", "share"), ("self",))
_HEAD = "operations of a step"
_WIDEST_NAME = 40
_GAP = 2
_WIDE = 120
_WIDEST_SHAPES = 20
_NO_DIGIT = 0.0995
"""From here on a percentage needs no digit after the point."""
_Key = tuple[str, str]
"""Name and shapes."""


def full_tables(report: RunReport, choice: TableChoice) -> list[Block]:
    """A table of all columns of each variant that was profiled, as somebody asked for it."""
    profiled = [variant for variant in report.variants if _rows(variant)]
    alone = len(profiled) == 1
    return [
        Fitted(
            OperationTable(
                variant, choice, _HEAD if alone else f"operations of {variant.name}"
            ).of_width
        )
        for variant in profiled
    ]


def operations(report: RunReport, *, most: int = MOST_ROWS) -> Block | None:
    """The `most` operations that a step, or an item, spends most in; of many variants the baseline
    and the last.
    """
    profiled = [
        variant for variant in report.variants if variant.goodput and variant.goodput.operations
    ]
    if not profiled:
        return None
    if len(profiled) == 1 and any(row.total_s is not None for row in _rows(profiled[0])):
        table = OperationTable(profiled[0], TableChoice(most=most), _HEAD, with_notes=False)
        return Fitted(table.of_width)
    shown = first_and_last(profiled)
    omitted = [variant.name for variant in profiled if variant not in shown]
    return Fitted(_OperationTable(shown, omitted, report.per, report.item, most).of_width)


@dataclass(frozen=True)
class _OperationTable:
    """As many figures for each variant as there is room for; operations that are longest anywhere
    first.
    """

    variants: Sequence[VariantReport]
    omitted: Sequence[str]
    per: Per
    item: str
    most: int

    @property
    def _head(self) -> str:
        return f"operations per {self.item}" if self.per == Per.ITEM else _HEAD

    def of_width(self, width: int) -> Iterator[Block]:
        alone = len(self.variants) == 1
        tables = [
            _by_name(variant, per_item=self.per == Per.ITEM, with_shapes=alone)
            for variant in self.variants
        ]
        longest: dict[_Key, Operation] = {}
        rows = ((key, operation) for table in tables for key, operation in table.items())
        for key, operation in sorted(rows, key=lambda row: -row[1].self_s):
            longest.setdefault(key, operation)
        order = list(longest)[: self.most]
        for figures in _FIGURES if len(tables) <= 2 else _FIGURES[1:]:
            columns = [_column(figures, [table.get(key) for key in order]) for table in tables]
            if width - sum(len(column[0]) + _GAP for column in columns) >= len(self._head):
                break
        shapes = [longest[key].shapes for key in order] if alone or width >= _WIDE else []
        yield self._table([name for name, _ in order], columns, shapes, width)
        if self.omitted:
            yield Text(f"not shown: {', '.join(self.omitted)}", "dim")

    def _table(
        self, names: list[str], columns: list[list[str]], shapes: list[str], width: int
    ) -> Table:
        """Where room is short, variants are folded, names and shapes cut, figures never."""
        head = self._head
        variants = [variant.name for variant in self.variants] if len(columns) > 1 else [""]
        widths = [len(column[0]) for column in columns]
        unfolded = [
            max(cells, cell_len(name)) for cells, name in zip(widths, variants, strict=True)
        ]
        shapes_width = min(_WIDEST_SHAPES, max(map(cell_len, shapes), default=0))
        if sum(unfolded) + len(head) + shapes_width + _GAP * (len(unfolded) + 1) <= width:
            widths = unfolded
        room = max(1, width - sum(widths) - _GAP * len(widths))
        name_width = min(
            _WIDEST_NAME,
            max(map(cell_len, (head, *names))),
            room,
            max(len(head), room - shapes_width - _GAP),
        )
        rest = room - name_width - _GAP

        table = columns_table()
        table.add_column(
            head, width=name_width, no_wrap=True, overflow="ellipsis", vertical="bottom"
        )
        for variant, column, cells in zip(variants, columns, widths, strict=True):
            heading = f"{variant}\n{column[0]}".lstrip("\n")
            table.add_column(
                heading, justify="right", width=cells, overflow="fold", vertical="bottom"
            )
        contents = [names, *(column[1:] for column in columns)]
        if 0 < shapes_width <= rest:
            table.add_column(
                "shapes",
                max_width=rest,
                no_wrap=True,
                overflow="ellipsis",
                vertical="bottom",
                style="dim",
            )
            contents.append(shapes)
        for row in zip(*contents, strict=True):
            table.add_row(*(Text(cell) for cell in row))
        return table


def _rows(variant: VariantReport) -> list[Operation]:
    return variant.goodput.operations if variant.goodput else []


def _by_name(variant: VariantReport, *, per_item: bool, with_shapes: bool) -> dict[_Key, Operation]:
    """The operations of a variant, the longest first, under name and shapes; or summed under their
    name and ''.
    """
    by_name: dict[_Key, Operation] = {}
    items = variant.items if per_item and variant.items else 1.0
    for row in by_inputs(_rows(variant)):
        key = short_name(row.name), row.shapes if with_shapes else ""
        operation = replace(row, calls=row.calls / items, self_s=row.self_s / items)
        if before := by_name.get(key):
            operation = before.plus(operation)
        by_name[key] = operation
    return by_name


def _column(figures: Sequence[str], operations: Sequence[Operation | None]) -> list[str]:
    """The names of the figures, and the figures of each operation below them."""
    columns = [
        [name, *(_figure(name, row) if row else "" for row in operations)] for name in figures
    ]
    widths = [max(map(len, column)) for column in columns]
    return [
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in zip(*columns, strict=True)
    ]


def _figure(name: str, operation: Operation) -> str:
    if name == "calls":
        return f"{operation.calls:,.4g}"
    if name == "self":
        return seconds(operation.self_s)
    digits = int(operation.share < _NO_DIGIT)
    return f"{operation.share:.{digits}%}"
