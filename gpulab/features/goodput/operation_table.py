"""The operations of one variant's step in full: sorted by any column, and summed by operation,
kernel, line of the program, or module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.payloads import REST
from gpulab.core.statuses import GroupBy, SortBy
from gpulab.core.text import short_name
from gpulab.core.units import byte_count, operation_of_roof, rate, seconds, three_digits
from gpulab.draw.bars import bar
from gpulab.draw.blocks import Block, Fitted, Group, Text
from gpulab.draw.canvas import fit, wide
from gpulab.draw.table import Column, fitting, width_of
from gpulab.features.goodput.analysis import summed
from gpulab.features.goodput.events import Operation
from gpulab.features.goodput.formulas import formula_of
from gpulab.report.report import RunReport, VariantReport

if TYPE_CHECKING:
    from gpulab.features.roofline.bound import OperationPoint


MOST_ROWS = 8
_NO_DIGIT = 0.0995
"""From here on a percentage needs no digit after the point."""
_BARS, _LEAST_BAR, _MOST_BAR = "of the step", 11, 40
_READABLE = 28
"""Cells of a name that bars leave."""
_SHORTEST = {
    GroupBy.OPERATION: 20,
    GroupBy.LINE: 20,
    GroupBy.MODULE: 32,
    GroupBy.KERNEL: 32,
}
"""Columns that names have, however many others there are."""
_NO_LINE, _NO_MODULE = "no line is known", "in no module"


@dataclass(frozen=True)
class TableChoice:
    """The table that somebody asked for. `sort`: None for the device's time, or without one the
    host's; of modules with those within them.
    """

    most: int | None = MOST_ROWS
    """Rows; None: all of them."""
    sort: SortBy | None = None
    group: GroupBy = GroupBy.OPERATION


@dataclass(frozen=True)
class Row:
    """One row: figures of a step, and its place below the roofs where it has one."""

    label: str
    operation: Operation
    point: OperationPoint | None = None


@dataclass(frozen=True)
class _Figure:
    """A column: how its figure is read and written. `dispensable`: the higher, the sooner it goes
    where there is no room.
    """

    sort: SortBy
    head: str
    value: Callable[[Row], float | None]
    text: Callable[[float], str]
    dispensable: int


def _intensity(row: Row) -> float | None:
    operation = row.operation
    if not operation.flops or not operation.bytes:
        return None
    return operation.flops / operation.bytes


def _percent(value: float) -> str:
    return f"{value:.{int(value < _NO_DIGIT)}%}"


def _number(value: float) -> str:
    return f"{value:,.4g}"


def _short(value: float) -> str:
    return three_digits(value) if value >= 0.1 else f"{value:.2g}"


def _size(value: float) -> str:
    if not value:
        return "0"
    return f"-{byte_count(-value)}" if value < 0 else byte_count(value)


def _time(value: float) -> str:
    return seconds(value) if value else "0"


def _count(value: float) -> str:
    return rate(value) if value else "0"


_FIGURES = (
    _Figure(SortBy.CALLS, "calls", lambda row: row.operation.calls, _number, 3),
    _Figure(SortBy.SELF, "self", lambda row: row.operation.self_s, _time, 1),
    _Figure(SortBy.TOTAL, "total", lambda row: row.operation.total_s, _time, 1),
    _Figure(SortBy.DEVICE, "device", lambda row: row.operation.device_s, _time, 1),
    _Figure(
        SortBy.DEVICE_TOTAL, "device total", lambda row: row.operation.device_total_s, _time, 7
    ),
    _Figure(SortBy.SHARE, "share", lambda row: row.operation.share, _percent, 5),
    _Figure(SortBy.MEMORY, "memory", lambda row: row.operation.memory_bytes, _size, 9),
    _Figure(SortBy.FLOPS, "FLOPs", lambda row: row.operation.flops, _count, 8),
    _Figure(SortBy.BYTES, "bytes", lambda row: row.operation.bytes, _size, 10),
    _Figure(SortBy.INTENSITY, "FLOP/byte", _intensity, _short, 6),
    _Figure(SortBy.RATE, "rate", lambda row: row.point.rate.value if row.point else None, rate, 5),
    _Figure(
        SortBy.ROOF,
        "of roof",
        lambda row: row.point.fraction.value if row.point else None,
        operation_of_roof,
        2,
    ),
)


def rows_of(variant: VariantReport, group: GroupBy) -> list[Row]:
    """The rows of a grouping, in the order of the report."""
    if variant.goodput is None:
        return []
    step_s = variant.goodput.step_s
    operations = [_set_share(row, step_s) for row in variant.goodput.operations]
    kernels = [row for row in operations if row.on_device]
    host = [row for row in operations if not row.on_device]
    match group:
        case GroupBy.KERNEL:
            return [Row(short_name(row.name), _device_row(row)) for row in kernels]
        case GroupBy.LINE:
            return _line_rows(host)
        case GroupBy.MODULE:
            return _module_rows(host)
        case GroupBy.OPERATION:
            return _operation_rows(host, kernels, variant.operation_points)


def _set_share(row: Operation, step_s: float | None) -> Operation:
    """Set the share of the step that an operation takes: on a device, that of its own time."""
    if row.device_s is None or not step_s:
        return row
    return replace(row, share=row.device_s / step_s)


def _device_row(kernel: Operation) -> Operation:
    """A kernel's time is the device's, none of the host."""
    return replace(kernel, device_s=kernel.self_s, device_total_s=kernel.self_s, self_s=0.0)


def _operation_rows(
    host: Sequence[Operation], kernels: Sequence[Operation], points: Iterable[OperationPoint]
) -> list[Row]:
    """With the kernels that no operation launched; of an earlier recording, which does not say, all
    of them.
    """
    places = {(point.variant, point.shapes, point.inputs): point for point in points}
    sums = summed(host, _inputs)
    rows = [Row(row.name, row, places.get(_inputs(row))) for row in sums]
    alone = [_device_row(row) for row in kernels if row.launched_by is None]
    return rows + [Row(short_name(row.name), row) for row in alone]


def _inputs(row: Operation) -> tuple[str, str, str | None]:
    return row.name, row.shapes, row.dtype


def _line_rows(host: Sequence[Operation]) -> list[Row]:
    """Sum operations by line, of their own times: what a line calls lies within it."""
    sums = summed(map(_own_only, host), lambda row: row.line)
    return [Row(row.line or _NO_LINE, row) for row in sums]


def _module_rows(host: Sequence[Operation]) -> list[Row]:
    """Totals are with the modules within a module, which have rows of their own."""
    own = {row.module: row for row in summed(map(_own_only, host), lambda row: row.module)}
    within: dict[str | None, list[Operation]] = {}
    for module, row in own.items():
        parts = module.split(".") if module else []
        for count in range(1, len(parts) + 1):
            within.setdefault(".".join(parts[:count]), []).append(row)
    rows = []
    for name, inner in within.items():
        whole = inner[0]
        for row in inner[1:]:
            whole = whole.plus(row)
        self_s = own[name].self_s if name in own else 0.0
        device_s = own[name].device_s if name in own else whole.device_s and 0.0
        rows.append(Row(name or "", replace(whole, self_s=self_s, device_s=device_s)))
    if None in own:
        rows.append(Row(_NO_MODULE, own[None]))
    return rows


def _own_only(row: Operation) -> Operation:
    """For sums over operations within each other: totals are sums of what is each one's own, and no
    formula is no work.
    """
    return replace(
        row,
        total_s=row.self_s,
        device_total_s=row.device_s,
        flops=row.flops or 0.0,
        bytes=row.bytes or 0.0,
    )


def sorted_rows(rows: Sequence[Row], choice: TableChoice) -> list[Row]:
    """The largest figures first, what has none last, and after all of them the sum of the rest."""
    sort = choice.sort or _usual_sort(rows, choice.group)
    if sort == SortBy.NAME:
        return sorted(rows, key=lambda row: (row.operation.name == REST, row.label))
    figure = next(figure for figure in _FIGURES if figure.sort == sort)

    def key(row: Row) -> tuple[bool, bool, float, float]:
        value = figure.value(row)
        rest = row.operation.name == REST
        return rest, value is None, -(value or 0.0), -row.operation.self_s

    return sorted(rows, key=key)


def sorts_of(variant: VariantReport, group: GroupBy) -> list[SortBy]:
    """The columns that have something in them."""
    rows = rows_of(variant, group)
    known = [figure.sort for figure in _FIGURES if any(map(figure.value, rows))]
    return [*known, SortBy.NAME]


def sort_of(variant: VariantReport, choice: TableChoice) -> SortBy:
    """The column by which its table is sorted."""
    return choice.sort or _usual_sort(rows_of(variant, choice.group), choice.group)


def _usual_sort(rows: Sequence[Row], group: GroupBy) -> SortBy:
    on_device = any(row.operation.device_s for row in rows)
    if group == GroupBy.MODULE:
        return SortBy.DEVICE_TOTAL if on_device else SortBy.TOTAL
    return SortBy.DEVICE if on_device else SortBy.SELF


@dataclass(frozen=True)
class OperationTable:
    """As many columns as there is room for; the one that it is sorted by always has room."""

    variant: VariantReport
    choice: TableChoice
    title: str = ""
    with_notes: bool = True

    def of_width(self, width: int) -> Iterator[Block]:
        rows = sorted_rows(rows_of(self.variant, self.choice.group), self.choice)
        shown = rows[: self.choice.most]
        if not shown:
            yield Text(f"{self.title}: {self._why_none()}", "dim")
            return
        columns = self._columns(shown, width)
        heads, *lines = zip(*(_cells(column) for column in columns), strict=True)
        yield _line(heads, columns, "bold")
        for line in lines:
            yield _line(line, columns, "")
        for note in self._notes(rows, shown) if self.with_notes else ():
            yield Text(note, "dim")

    def _why_none(self) -> str:
        match self.choice.group:
            case GroupBy.KERNEL:
                return "no kernel of a device was recorded"
            case GroupBy.MODULE:
                return "no torch.nn.Module called an operation"
            case _:
                return "no operation was recorded"

    def _columns(self, rows: Sequence[Row], width: int) -> list[Column]:
        sort = self.choice.sort or _usual_sort(rows, self.choice.group)
        figures = []
        for figure in _FIGURES:
            values = [figure.value(row) for row in rows]
            if not any(values):
                continue
            texts = ["" if value is None else figure.text(value) for value in values]
            chosen = figure.sort == sort
            dispensable = 0 if chosen else figure.dispensable
            head = f"{figure.head} ↓" if chosen else figure.head
            figures.append(Column(head, texts, right=True, dispensable=dispensable))
        columns = fitting(figures + self._words(rows), width - _SHORTEST[self.choice.group])
        room = max(_SHORTEST[self.choice.group], width - width_of(columns))
        labels = [row.label for row in rows]
        head = self.title or str(self.choice.group)
        most = min(room, max(map(wide, (head, *labels))))
        beside_bars = room - _LEAST_BAR - 2
        if beside_bars >= _READABLE:
            most = min(most, beside_bars)
        name = Column(fit(head, most), [_fitted(label, most) for label in labels], gap=0)
        return [name, *_bars(rows, room - most), *columns]

    def _words(self, rows: Sequence[Row]) -> list[Column]:
        """Return what calls were, and who made them; of a grouping that sums them, nothing."""
        if self.choice.group == GroupBy.KERNEL:
            return _words("launched by", [row.operation.launched_by for row in rows], 4, 30)
        if self.choice.group != GroupBy.OPERATION:
            return []
        operations = [row.operation for row in rows]
        return [
            *_words("type", [row.dtype for row in operations], 11, 8),
            *_words("line", [row.line for row in operations], 4, 24),
            *_words("module", [row.module for row in operations], 12, 36),
            *_words("shapes", [row.shapes for row in operations], 8, 40),
        ]

    def _notes(self, rows: Sequence[Row], shown: Sequence[Row]) -> list[str]:
        notes = []
        if len(rows) > len(shown):
            notes.append(f"{len(shown)} of {len(rows)} rows; --top N shows more")
        if self.choice.group == GroupBy.OPERATION:
            known = any(row.operation.bytes for row in rows)
            without = [row.label for row in shown if _lacks_a_formula(row)]
            if known and without:
                names = ", ".join(dict.fromkeys(without))
                notes.append(f"no formula for FLOPs and bytes: {names}")
        if any(row.operation.flops for row in shown):
            notes.append("FLOPs and bytes: derived from shapes and types, not counted")
        return notes


def _lacks_a_formula(row: Row) -> bool:
    """An operation that does something itself, of which nothing is known."""
    operation = row.operation
    if operation.bytes is not None or operation.name == REST:
        return False
    if formula_of(operation.name) is not None:  # its work is that of an operation around it
        return False
    own_s = operation.device_s if operation.device_s is not None else operation.self_s
    whole_s = operation.device_total_s if operation.device_s is not None else operation.total_s
    return bool(own_s and whole_s and own_s > _MOST_OF_IT * whole_s)


_MOST_OF_IT = 0.5


def _words(head: str, texts: Sequence[str | None], dispensable: int, most: int) -> list[Column]:
    """A column, where any row has something for it."""
    if not any(texts):
        return []
    return [Column(head, [fit(text or "", most) for text in texts], dispensable=dispensable)]


def _fitted(label: str, most: int) -> str:
    """Without what all of torch's operations begin with, where there is no room for it."""
    if wide(label) > most:
        label = label.removeprefix("aten::").replace(
            "autograd::engine::evaluate_function", "autograd"
        )
    return fit(label, most)


def _bars(rows: Sequence[Row], room: int) -> list[Column]:
    """A column of shares in bars, the largest of them full, where it has room."""
    shares = [row.operation.share or 0.0 for row in rows]
    cells = min(room - 2, _MOST_BAR)
    if cells < _LEAST_BAR or not any(shares):
        return []
    return [Column(_BARS, [bar(share / max(shares), cells) for share in shares])]


def _cells(column: Column) -> list[str]:
    return [column.head, *column.texts]


def _line(cells: Sequence[str], columns: Sequence[Column], style: str) -> Text:
    line = Text(style=style, no_wrap=True)
    for cell, column in zip(cells, columns, strict=True):
        space = " " * (column.width - wide(cell))
        line.append(" " * column.gap)
        padded = space + cell if column.right else cell + space
        line.append(padded, "cyan" if column.head == _BARS and not style else "")
    line.rstrip()
    return line


_HEAD = "operations of a step"


def full_tables(report: RunReport, choice: TableChoice) -> list[Block]:
    """A table of all columns of each variant that was profiled, as somebody asked for it."""
    return _tables(_profiled(report), choice, with_notes=True)


def operations(report: RunReport, *, most: int = MOST_ROWS) -> Block | None:
    """The `most` operations that a step spends most in; of several variants those of the baseline
    and of the last.
    """
    profiled = _profiled(report)
    if not profiled:
        return None
    first, *others = profiled
    shown = [first, *others[-1:]]
    blocks = _tables(shown, TableChoice(most=most), with_notes=False)
    if omitted := [variant.name for variant in profiled if variant not in shown]:
        blocks.append(Text(f"not shown: {', '.join(omitted)}", "dim"))
    return Group(*blocks)


def _profiled(report: RunReport) -> list[VariantReport]:
    return [each for each in report.variants if each.goodput and each.goodput.operations]


def _tables(variants: list[VariantReport], choice: TableChoice, *, with_notes: bool) -> list[Block]:
    blocks: list[Block] = []
    for variant in variants:
        title = _HEAD if len(variants) == 1 else f"operations of {variant.name}"
        table = OperationTable(variant, choice, title, with_notes=with_notes)
        blocks.append(Fitted(table.of_width))
    return blocks
