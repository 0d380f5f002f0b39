"""A plot's cells: lines below, and on top of them text that finds a place of its own or is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpulab.protocol.ceiling import Ceiling
from gpulab.views.roofline.axes import Axes
from gpulab.views.roofline.canvas import cells
from gpulab.views.text import Glyphs

POINT, BADGE, HEAD, CEILING, NAME = "point", "badge", "head", "ceiling", "name"
BY_COUNT = "by count"
"""Where a point would be by the bytes that the device counted."""
DIM = "dim"
_COVERS, _COVERS_DIM = 10.0, 0.1
"""What it costs a label to cover one cell of a line, in candidates further down its list; of a dim line this share."""
_NO_DOTS = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille: the bit of each dot, by row and column."""
Cell = tuple[int, int]


@dataclass(frozen=True)
class Marks:
    """The characters of a plot."""

    thirds: str = "▁─▔"
    steep: str = ""
    """For a slope; empty where dots are finer."""
    dot: str = "·"
    trail: str = "∙"
    left: str = "←"
    right: str = "→"
    up: str = "↑"
    down: str = "↓"
    off_left: str = "◂"
    off_right: str = "▸"
    off_top: str = "▲"
    off_bottom: str = "▼"


_ASCII = Marks('_-"', "/", ".", ":", "<", ">", "^", "v", "<", ">", "^", "v")


@dataclass(frozen=True)
class Anchor:
    """A cell that a text starts at, ends at, or has in its middle: `align` is 0, 1, or 0.5."""

    row: int
    column: int
    align: float = 0.0

    def start(self, width: int) -> int:
        return self.column - round(self.align * (width - 1))


@dataclass(frozen=True)
class Placed:
    """Text from one cell on; `points` are the indices of those that it stands for."""

    kind: str
    row: int
    column: int
    text: str
    width: int
    style: str = ""
    points: tuple[int, ...] = ()

    @property
    def cells(self) -> set[Cell]:
        return {(self.row, self.column + at) for at in range(self.width)}


@dataclass
class Plot:
    """What was drawn and placed inside the axes."""

    axes: Axes
    glyphs: Glyphs
    lines: dict[Cell, tuple[str, str]] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    occupied: set[Cell] = field(default_factory=set)
    unlabelled: list[Ceiling] = field(default_factory=list)
    """Ceilings that found no place for a line with its label, nor in another's label."""

    @property
    def marks(self) -> Marks:
        return _ASCII if self.glyphs.ascii else Marks()

    def dot(self, row: int, column: int, style: str) -> None:
        """A dot, in quarters of rows and halves of columns. Those in a cell stand together, but not over a line."""
        cell = (row // 4, column // 2)
        before = ord(self.lines[cell][0]) if cell in self.lines else _NO_DOTS
        if self.inside(*cell) and before >= _NO_DOTS:
            self.lines[cell] = (chr(before | _DOTS[row % 4][column % 2]), style)

    def of_kinds(self, *kinds: str) -> list[Placed]:
        return [placed for placed in self.placed if placed.kind in kinds]

    def together(self) -> list[tuple[int, ...]]:
        """The points that share a cell."""
        return [placed.points for placed in self.of_kinds(POINT) if len(placed.points) > 1]

    def inside(self, row: int, column: int) -> bool:
        return 0 <= row < self.axes.rows and 0 <= column < self.axes.columns

    def free(self, row: int, column: int, width: int, *, margin: int = 0) -> bool:
        """Whether nothing was placed at these cells; `margin` of them at either end may lie outside."""
        if not (self.inside(row, column + margin) and self.inside(row, column + width - 1 - margin)):
            return False
        return self.occupied.isdisjoint([(row, at) for at in range(column, column + width)])

    def place(
        self, kind: str, row: int, column: int, text: str, style: str = "", points: tuple[int, ...] = ()
    ) -> Placed:
        placed = Placed(kind, row, column, text, len(cells(text, self.glyphs)), style, points)
        self.placed.append(placed)
        self.occupied |= placed.cells
        return placed

    def cheapest(self, anchors: Iterable[Anchor], width: int) -> tuple[float, Cell] | None:
        """Where a text covers the least of the lines; of places that cover as much, an early one."""
        cheapest: tuple[float, Cell] | None = None
        for rank, anchor in enumerate(anchors):
            column = anchor.start(width)
            covers = self._covers(anchor.row, column, width)
            if covers is not None and (cheapest is None or _COVERS * covers + rank < cheapest[0]):
                cheapest = (_COVERS * covers + rank, (anchor.row, column))
                if not covers:
                    break
        return cheapest

    def label(
        self,
        kind: str,
        texts: Iterable[str],
        anchors: Iterable[Anchor],
        style: str = "",
        points: tuple[int, ...] = (),
        *,
        clear: bool = False,
    ) -> Placed | None:
        """Place the first text that finds a place beside all lines.

        Else the one that covers the least of them, or none where it must be `clear` of them. Dim dots make room for it.
        """
        anchors = list(anchors)
        best: tuple[float, Cell, str] | None = None
        for text in texts:
            width = len(cells(text, self.glyphs))
            place = self.cheapest(anchors, width)
            if place and (self._covers(*place[1], width) or 0) < 1:
                best = (*place, text)
                break
            if place and not clear and (best is None or place[0] < best[0]):
                best = (*place, text)
        if best is None:
            return None
        placed = self.place(kind, *best[1], best[2], style, points)
        for cell in ((placed.row, placed.column - 1), (placed.row, placed.column + placed.width)):
            if self.lines.get(cell, ("", ""))[1] == DIM:
                del self.lines[cell]
        return placed

    def _covers(self, row: int, column: int, width: int) -> float | None:
        """Cells of lines below a text and at its ends; None where it would leave the plot, or touch what was placed."""
        if not self.free(row, column - 1, width + 2, margin=1):
            return None
        below = (self.lines.get((row, at)) for at in range(column - 1, column + width + 1))
        return sum(_COVERS_DIM if line[1] == DIM else 1.0 for line in below if line)
