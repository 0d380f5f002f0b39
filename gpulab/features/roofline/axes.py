"""What a roofline is drawn in: logarithmic axes, and cells in which text finds a place or is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, floor, log10

from gpulab.core.payloads import CACHE, MATRIX, MEMORY, SOURCES, VECTOR, family
from gpulab.draw.axis import LogAxis
from gpulab.draw.canvas import cells
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling

THIRDS = 3
"""Positions of a line in a row: low, middle, high."""
_LEFT = -2
_LITTLE = 0.05
"""Decades that another source's roof may be above the highest without adding one."""
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True)
class Roof:
    """A ceiling, and what less good sources say of the same."""

    ceiling: Ceiling
    others: tuple[Ceiling, ...] = ()

    @property
    def median(self) -> float:
        return self.ceiling.median

    @property
    def most(self) -> float:
        return max(ceiling.median for ceiling in (self.ceiling, *self.others))


@dataclass(frozen=True)
class FamilyRoofs:
    """The roofs of one family: two slopes, and up to two flat ones, the highest first."""

    memory: Roof | None
    cache: Roof | None
    flats: tuple[Roof, ...]

    @property
    def ridge(self) -> float:
        """FLOP/byte at which device memory no longer limits."""
        return self.flats[0].median / self.memory.median if self.flats and self.memory else 0.0


def family_roofs(ceilings: Sequence[Ceiling], dtypes: str) -> FamilyRoofs:
    """The roofs of the family of `dtypes`."""
    usable = [ceiling for ceiling in ceilings if ceiling.median > 0]
    kinds = {
        ceiling.kind
        for ceiling in usable
        if ceiling.roof in (MATRIX, VECTOR) and family(ceiling.kind) == dtypes
    }
    flats = [roof for roof in (_roof(usable, MATRIX, kinds), _roof(usable, VECTOR, kinds)) if roof]
    flats.sort(key=lambda roof: roof.median, reverse=True)
    return FamilyRoofs(_roof(usable, MEMORY), _roof(usable, CACHE), tuple(flats))


def _roof(
    ceilings: Sequence[Ceiling], roof: str, kinds: Iterable[str] | None = None
) -> Roof | None:
    best = [
        ceiling
        for source in SOURCES
        if (
            ceiling := RoofSet([other for other in ceilings if other.source == source]).best(
                roof, kinds
            )
        )
    ]
    return Roof(best[0], tuple(best[1:])) if best else None


@dataclass(frozen=True)
class Axes:
    """Cells of a plot, from the top left. A decade of rate ends in the middle of a row, one of
    intensity in a column.

    `left`, `right`, `bottom`, `top` are powers of ten.
    """

    left: int
    right: int
    bottom: int
    top: int
    columns: int
    rows: int
    above: int = 0
    """Rows over the highest decade, for labels."""

    @cached_property
    def across(self) -> LogAxis:
        """Of intensity, by column."""
        return LogAxis(10.0**self.left, 10.0**self.right, self.columns)

    @cached_property
    def up(self) -> LogAxis:
        """Of rate, by row from the lowest."""
        return LogAxis(10.0**self.bottom, 10.0**self.top, self.rows - self.above)

    @property
    def steepness(self) -> float:
        """Rows that a slope climbs in a column."""
        return self.up.per_decade / self.across.per_decade

    def column(self, intensity: float) -> int:
        """May lie outside, as a row may."""
        return self.across.cell(intensity)

    def row(self, rate: float) -> int:
        return self.rows - 1 - self.up.cell(rate)

    def level(self, rate: float) -> int:
        """Thirds of a row, from the lower end of the lowest."""
        return floor((self.rows - self.depth(rate)) * THIRDS)

    def depth(self, rate: float) -> float:
        """Rows, from the upper end of the highest."""
        return self.rows - 0.5 - self.up.position(rate)

    def intensity(self, column: float) -> float:
        """At the middle of a column."""
        return self.across.value(column)

    def rate(self, row: float) -> float:
        """At the middle of a row."""
        return self.up.value(self.rows - 1 - row)

    def ticks(self) -> tuple[dict[int, str], dict[int, str]]:
        """The decades of intensity by column, and of rate by row."""
        across = {
            self.column(10.0**power): decade(power) for power in range(self.left, self.right + 1)
        }
        return across, {
            self.row(10.0**power): decade(power) for power in range(self.bottom, self.top + 1)
        }


def axes_for(roofs: FamilyRoofs, columns: int, rows: int) -> Axes:
    """From the roofs, never from points: a variant that gets faster moves."""
    assert roofs.memory is not None, "without memory there is no ridge"
    highest = max(roof.most for roof in roofs.flats)
    top = max(floor(log10(roofs.flats[0].median)) + 1, ceil(log10(highest) - _LITTLE))
    bottom = min(floor(log10(roofs.memory.median * 10.0**_LEFT)) - 1, top - 2)
    right = max(ceil(log10(highest / roofs.memory.median) + 2), 1)
    axes = Axes(_LEFT, right, bottom, top, max(columns, 2), max(rows, 3))
    if axes.row(highest) < 1:
        return Axes(_LEFT, right, bottom, top, axes.columns, axes.rows, above=1)
    return axes


def decade(power: int) -> str:
    """Such as 0.01, 10, 1k, 100G."""
    if power < 0:
        return f"{10.0**power:g}"
    if power >= len(_PREFIXES) * 3:
        return f"1e{power}"
    return f"{10 ** (power % 3)}{_PREFIXES[power // 3]}"


POINT, BADGE, HEAD, CEILING, NAME = "point", "badge", "head", "ceiling", "name"
BY_COUNT = "by count"
"""Where a point would be by the bytes that the device counted."""
DIM = "dim"
_COVERS, _COVERS_DIM = 10.0, 0.1
"""What it costs a label to cover one cell of a line, in candidates further down its list; of a dim
line this share.
"""
_NO_DOTS = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille: the bit of each dot, by row and column."""
Cell = tuple[int, int]


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
    lines: dict[Cell, tuple[str, str]] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    occupied: set[Cell] = field(default_factory=set)
    unlabelled: list[Ceiling] = field(default_factory=list)
    """Ceilings that found no place for a line with its label, nor in another's label."""

    def dot(self, row: int, column: int, style: str) -> None:
        """A dot, in quarters of rows and halves of columns. Those in a cell stand together, but not
        over a line.
        """
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
        """Whether nothing was placed at these cells; `margin` of them at either end may lie
        outside.
        """
        if not (
            self.inside(row, column + margin) and self.inside(row, column + width - 1 - margin)
        ):
            return False
        return self.occupied.isdisjoint([(row, at) for at in range(column, column + width)])

    def place(
        self,
        kind: str,
        row: int,
        column: int,
        text: str,
        style: str = "",
        points: tuple[int, ...] = (),
    ) -> Placed:
        placed = Placed(kind, row, column, text, len(cells(text)), style, points)
        self.placed.append(placed)
        self.occupied |= placed.cells
        return placed

    def cheapest(self, anchors: Iterable[Anchor], width: int) -> tuple[float, Cell] | None:
        """Where a text covers the least of the lines; of places that cover as much, an early
        one.
        """
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

        Else the one that covers the least of them, or none where it must be `clear` of them. Dim
        dots make room for it.
        """
        anchors = list(anchors)
        best: tuple[float, Cell, str] | None = None
        for text in texts:
            width = len(cells(text))
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
        """Cells of lines below a text and at its ends; None where it would leave the plot, or touch
        what was placed.
        """
        if not self.free(row, column - 1, width + 2, margin=1):
            return None
        below = (self.lines.get((row, at)) for at in range(column - 1, column + width + 1))
        return sum(_COVERS_DIM if line[1] == DIM else 1.0 for line in below if line)
