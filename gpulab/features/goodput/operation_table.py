"""The operations of one variant's step in a table, those that take longest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from gpulab.core.payloads import REST
from gpulab.core.text import short_name
from gpulab.core.units import byte_count, operation_of_roof, rate, seconds
from gpulab.draw.bars import bar
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table
from gpulab.draw.canvas import fit, wide
from gpulab.draw.table import Column, fitting, width_of
from gpulab.features.goodput.events import Operation, summed
from gpulab.report.report import RunReport, VariantReport

MOST_ROWS = 8
_SHORTEST_NAME, _READABLE_NAME = 20, 28
"""Cells that names have, however many columns there are; and beside bars."""
_SHORTEST_BAR, _LONGEST_BAR, _GAP = 11, 40, 2


@dataclass(frozen=True)
class Row:
    """Figures of a step: `own_s` and `share` are of the device's time where it has any, else of
    the host's; `of_roof` is the share of its roof, where that is known.
    """

    label: str
    operation: Operation
    own_s: float
    share: float
    of_roof: float | None = None


@dataclass(frozen=True)
class _Figure:
    """A column: how its figure is read and written. `dispensable`: the higher, the sooner it goes
    where there is no room.
    """

    head: str
    dispensable: int
    value: Callable[[Row], float | None]
    text: Callable[[float], str]


def _size(value: float) -> str:
    return f"-{byte_count(-value)}" if value < 0 else byte_count(value)


_FIGURES = (
    _Figure("calls", 3, lambda row: row.operation.calls, "{:,.4g}".format),
    _Figure("self", 1, lambda row: row.operation.self_s, seconds),
    _Figure("total", 2, lambda row: row.operation.total_s, seconds),
    _Figure("device", 0, lambda row: row.operation.device_s, seconds),
    _Figure("share", 5, lambda row: row.share, "{:.1%}".format),
    _Figure("memory", 9, lambda row: row.operation.memory_bytes, _size),
    _Figure("FLOPs", 8, lambda row: row.operation.flops, rate),
    _Figure("bytes", 10, lambda row: row.operation.bytes, _size),
    _Figure("of roof", 2, lambda row: row.of_roof, operation_of_roof),
)
_WORDS = (("dtype", 11, 8), ("line", 4, 24), ("module", 12, 36), ("shapes", 7, 40))
"""Of columns of words: the field, how soon it goes, and its cells."""


def rows_of(variant: VariantReport) -> list[Row]:
    """Return the operations of a step, whoever calls them, with the kernels that none of them
    launched: the longest first, and after all of them the sum of the rest.
    """
    if variant.goodput is None:
        return []
    step_s = variant.goodput.step_s or 0.0
    of_roof = {
        (point.variant, point.shapes, point.inputs): point.fraction.value
        for point in variant.operation_points
    }
    operations: list[Operation] = variant.goodput.operations
    rows = []
    for each in summed((each for each in operations if not each.on_device), _inputs):
        own_s, share = each.self_s, each.share
        if each.device_s is not None and step_s:
            own_s, share = each.device_s, each.device_s / step_s
        rows.append(Row(each.name, each, own_s, share, of_roof.get(_inputs(each))))
    for each in operations:
        if each.on_device and each.launched_by is None:
            kernel = replace(each, self_s=0.0, device_s=each.self_s)
            rows.append(Row(short_name(each.name), kernel, each.self_s, each.share))
    return sorted(rows, key=lambda row: (row.operation.name == REST, -row.own_s, row.label))


def _inputs(row: Operation) -> tuple[str, str, str | None]:
    return row.name, row.shapes, row.dtype


def full_tables(report: RunReport, most: int | None) -> list[Block]:
    """Return a table of each variant that was profiled, of so many rows, or of all."""
    return _tables(profiled(report), most)


def operations(report: RunReport, *, most: int = MOST_ROWS) -> Block | None:
    """The `most` operations that a step spends most in; of several variants those of the baseline
    and of the last.
    """
    variants = profiled(report)
    if not variants:
        return None
    first, *others = variants
    shown = [first, *others[-1:]]
    blocks = _tables(shown, most)
    if omitted := [variant.name for variant in variants if variant not in shown]:
        blocks.append(Text(f"not shown: {', '.join(omitted)}", "dim"))
    return Group(*blocks)


def profiled(report: RunReport) -> list[VariantReport]:
    """Return the variants of which operations were recorded."""
    return [each for each in report.variants if each.goodput and each.goodput.operations]


def _tables(variants: Sequence[VariantReport], most: int | None) -> list[Block]:
    titles = [f"operations of {variant.name}" for variant in variants]
    if len(variants) == 1:
        titles = ["operations of a step"]
    return [
        operation_table(variant, title, most)
        for variant, title in zip(variants, titles, strict=True)
    ]


def operation_table(variant: VariantReport, title: str, most: int | None) -> Block:
    """Return a table with as many columns as there is room for."""
    rows = rows_of(variant)
    shown = rows[:most]

    def of_width(width: int) -> Iterator[Block]:
        columns = fitting(_columns(shown), width - _SHORTEST_NAME)
        room = max(_SHORTEST_NAME, width - width_of(columns))
        widest = max(wide(text) for text in (title, *(row.label for row in shown)))
        cells = min(widest, room)
        bars: list[Column] = []
        if room - _SHORTEST_BAR - _GAP >= _READABLE_NAME:
            cells = min(cells, room - _SHORTEST_BAR - _GAP)
            bars = [_bars(shown, min(_LONGEST_BAR, room - cells - _GAP))]
        names = Column(fit(title, cells), [_short(row.label, cells) for row in shown])
        table = columns_table()
        for column in (names, *bars, *columns):
            justify: Literal["left", "right"] = "right" if column.right else "left"
            table.add_column(Text(column.head, "bold"), justify=justify, no_wrap=True)
        for place in range(len(shown)):
            table.add_row(*(column.texts[place] for column in (names, *bars, *columns)))
        yield table
        if len(rows) > len(shown):
            yield Text(f"{len(shown)} of {len(rows)} rows; --top N shows more", "dim")

    return Fitted(of_width)


def _columns(rows: Sequence[Row]) -> list[Column]:
    """Those that have something in them."""
    columns = []
    for figure in _FIGURES:
        values = [figure.value(row) for row in rows]
        texts = ["" if value is None else figure.text(value) for value in values]
        if any(values):
            columns.append(Column(figure.head, texts, right=True, dispensable=figure.dispensable))
    for field, dispensable, most in _WORDS:
        words = [fit(getattr(row.operation, field) or "", most) for row in rows]
        if any(words):
            columns.append(Column(field, words, dispensable=dispensable))
    return columns


def _short(label: str, cells: int) -> str:
    """Without what all of torch's operations begin with, where there is no room for it."""
    if wide(label) > cells:
        label = label.removeprefix("aten::").removeprefix("autograd::engine::evaluate_function: ")
    return fit(label, cells)


def _bars(rows: Sequence[Row], cells: int) -> Column:
    """Shares of the step; the largest bar is full."""
    longest = max(row.share for row in rows) or 1.0
    return Column("of the step", [bar(row.share / longest, cells) for row in rows])
