"""A figure in the cells of a terminal: lines in Braille, points as letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from typing import TYPE_CHECKING

from rich.text import Text

from gpulab.draw.axis import Axis, axis_of, evened
from gpulab.draw.canvas import Canvas, fit, wide

if TYPE_CHECKING:
    from gpulab.draw.figure import Figure, Line, Mark, Scale

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille: the bit of each dot, by row and column."""
_LEAST_ROWS = 2
"""From one tick to the next."""
_SEVERAL = "+"
"""The mark of points that share a cell."""
_BESIDE = (1, -1, 2, -2)
"""Columns from the cell of a point, in which it is drawn where another stands there."""
Cell = tuple[int, int]


def plot(figure: Figure, width: int, height: int) -> Text:
    """The figure in so many columns and rows, of which the first is its title."""
    canvas = Canvas(width, height)
    canvas.put(0, 0, fit(figure.title, width), "bold")
    assert figure.y is not None  # bars are drawn on pages and in pictures
    _Plot(canvas, figure, figure.y, width, height).draw()
    return canvas.text()


class _Plot:
    """Lines and marks over two axes; a text has a place only where no other stands."""

    def __init__(self, canvas: Canvas, figure: Figure, y: Scale, width: int, height: int) -> None:
        self._canvas, self._figure = canvas, figure
        # below its title, and above the axis with its labels
        self._rows = max(3, height - 3)
        y = evened(y, self._rows, _LEAST_ROWS)
        self._up = axis_of(y, self._rows)
        rows = dict(_ticks_up(self._up, y))
        self._labels = {self._rows - 1 - cell: text for cell, text in rows.items()}
        self._left = max((wide(text) for text in self._labels.values()), default=0) + 1
        self._columns = max(10, width - self._left)
        self._across = axis_of(figure.x, self._columns)
        self._taken: set[Cell] = set()
        self._dots: dict[Cell, tuple[int, str]] = {}

    def draw(self) -> None:
        self._draw_axes()
        for line in self._figure.lines:
            self._draw_line(line)
        for (row, column), (dots, style) in self._dots.items():
            self._put(row, column, chr(0x2800 + dots), style)
        places = self._places_of_marks()
        for (row, column), marks in places.items():
            letter = marks[0].letter if len(marks) == 1 else _SEVERAL
            self._put(row, column, letter, f"bold {marks[0].style}".rstrip())
            self._taken.add((row, column))
        for line in reversed(self._figure.lines):  # the last has the fewest places: a flat roof
            if line.label:
                self._label_line(line)
        for cell, marks in places.items():
            self._name_marks(cell, marks)

    def _put(self, row: int, column: int, text: str, style: str) -> None:
        if 0 <= row < self._rows:
            self._canvas.put(1 + row, self._left + column, text, style)

    def _draw_axes(self) -> None:
        for row in range(self._rows):
            label = self._labels.get(row, "")
            tick = "┤" if label else "│"
            self._canvas.put(1 + row, 0, f"{label:>{self._left - 1}}{tick}", "dim")
        end = 1 + self._rows
        self._canvas.put(end, self._left - 1, "└" + "─" * self._columns, "dim")
        name = self._figure.x.name
        start_of_name = self._columns - wide(name)
        for cell, start, text in _ticks_across(self._across, self._figure.x):
            self._canvas.put(end, self._left + cell, "┬", "dim")
            if start + wide(text) < start_of_name:
                self._canvas.put(end + 1, self._left + start, text, "dim")
        self._canvas.put(end + 1, self._left + max(0, start_of_name), name, "bold")

    def _cell_of(self, x: float, y: float) -> Cell:
        """The nearest cell inside."""
        return self._rows - 1 - self._up.inside(y), self._across.inside(x)

    def _draw_line(self, line: Line) -> None:
        """In dots: two columns and four rows a cell."""
        at = 0
        for (x, y), (next_x, next_y) in zip(line.points, line.points[1:], strict=False):
            start = self._across.position(x), self._rows - 1 - self._up.position(y)
            end = self._across.position(next_x), self._rows - 1 - self._up.position(next_y)
            steps = max(1, int(max(2 * abs(end[0] - start[0]), 4 * abs(end[1] - start[1]))))
            for step in range(steps + 1):
                share = step / steps
                column = start[0] + share * (end[0] - start[0])
                row = start[1] + share * (end[1] - start[1])
                at += 1
                # every fourth dot of a dashed line
                if not line.dashed or at % 4 == 0:
                    self._dot(floor(4 * (row + 0.5)), floor(2 * (column + 0.5)), line.style)

    def _dot(self, row: int, column: int, style: str) -> None:
        cell = row // 4, column // 2
        if 0 <= cell[0] < self._rows and 0 <= cell[1] < self._columns:
            before, _ = self._dots.get(cell, (0, ""))
            self._dots[cell] = before | _DOTS[row % 4][column % 2], style

    def _place(self, text: str, places: Iterator[Cell], style: str, *, clear: bool) -> bool:
        """Put a text at the first place with no more than a line in its way; `clear`: no line."""
        width = wide(text)
        for row, column in places:
            cells = {(row, at) for at in range(column - 1, column + width + 1)}
            inside = 0 <= row < self._rows and column >= 0 and column + width <= self._columns
            if inside and not cells & self._taken and not (clear and cells & self._dots.keys()):
                self._put(row, column, text, style)
                self._taken |= cells
                return True
        return False

    def _label_line(self, line: Line) -> None:
        """Beside its right end, or as near to there as there is room; without what is in
        brackets.
        """
        cells = [self._cell_of(x, y) for x, y in _dense(line, self._across)]
        style = f"not bold {line.style}".rstrip()
        text = fit(line.label.partition(" (")[0], self._columns)
        for clear in (True, False):
            if self._place(text, _neighbours(cells, wide(text), line), style, clear=clear):
                return

    def _places_of_marks(self) -> dict[Cell, list[Mark]]:
        """Each letter in its cell; where another stands there, one with a name in a free cell
        beside it, or else with that one.
        """
        cells = [self._cell_of(mark.x, mark.y) for mark in self._figure.marks]
        places: dict[Cell, list[Mark]] = {}
        for cell, mark in zip(cells, self._figure.marks, strict=True):
            there = places.setdefault(cell, [])
            if there and not mark.name:
                continue
            there[:] = [other for other in there if other.letter != mark.letter]
            beside = [(cell[0], cell[1] + by) for by in _BESIDE] if there else []
            taken = {*cells, *places}
            inside = range(self._columns)
            free = (each for each in beside if each not in taken and each[1] in inside)
            places.setdefault(next(free, cell), []).append(mark)
        return places

    def _name_marks(self, cell: Cell, marks: Sequence[Mark]) -> None:
        """By the name of one, or the letters of several."""
        several = _SEVERAL.join(mark.letter for mark in marks)
        text = several if len(marks) > 1 else fit(marks[0].name, 18)
        row, column = cell
        width = wide(text)
        around = (
            (row, column + 2),
            (row, column - 1 - width),
            (row - 1, column - width // 2),
            (row + 1, column - width // 2),
        )
        if text:
            self._taken.discard((row, column))
            self._place(text, iter(around), marks[0].style, clear=True)
            self._taken.add((row, column))


def _dense(line: Line, axis: Axis) -> Iterator[tuple[float, float]]:
    """Points of the line from its right end to its left, a cell apart."""
    for (x, y), (next_x, next_y) in zip(
        reversed(line.points[:-1]), reversed(line.points[1:]), strict=True
    ):
        cells = max(1, abs(axis.inside(next_x) - axis.inside(x)))
        for cell in range(cells + 1):
            share = 1 - cell / cells
            yield _interpolated(x, next_x, share), _interpolated(y, next_y, share)


def _interpolated(start: float, end: float, share: float) -> float:
    """On a logarithmic scale where both are positive."""
    if start > 0 and end > 0:
        return float(start * (end / start) ** share)
    return start + share * (end - start)


def _neighbours(cells: Sequence[Cell], width: int, line: Line) -> Iterator[Cell]:
    """Above a line and below it, so that the text ends or begins at it."""
    for row, column in cells:
        if line.below:
            yield row, column + 2
            yield row + 1, column + 1
            continue
        yield row - 1, column - width + 1
        yield row + 1, column - width + 1
        yield row, column + 2
        yield row, column - width - 1
        yield row + 1, column + 1


def _ticks_up(axis: Axis, scale: Scale) -> Iterator[tuple[int, str]]:
    """(cell from below, label), in steps of as many rows each."""
    if scale.ticks:
        every = max(1, -(-len(scale.ticks) // max(1, axis.cells // _LEAST_ROWS)))
        for value in scale.ticks[::every]:
            yield axis.inside(value), scale.label(value)
        return
    last = axis.cells - 1
    for cell in sorted({0, last // 2, last}):
        yield cell, scale.label(axis.value(cell))


def _ticks_across(axis: Axis, scale: Scale) -> Iterator[tuple[int, int, str]]:
    """(cell, where its label begins, label)."""
    if scale.ticks:
        after = 0
        for value in scale.ticks:
            cell, text = axis.inside(value), scale.label(value)
            start = max(0, cell - wide(text) // 2)
            if start >= after:
                yield cell, start, text
                after = start + wide(text) + 1
        return
    for start, text in axis.ticks(scale.label):
        yield start + wide(text) // 2, start, text
