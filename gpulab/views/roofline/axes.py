"""What a roofline is drawn in: roofs from ceilings, and logarithmic axes that the roofs alone decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10

from gpulab.analysis.ceilings import RoofSet
from gpulab.protocol.ceiling import CACHE, MATRIX, MEMORY, SOURCES, VECTOR, Ceiling, family

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
    kinds = {ceiling.kind for ceiling in usable if ceiling.roof in (MATRIX, VECTOR) and family(ceiling.kind) == dtypes}
    flats = [roof for roof in (_roof(usable, MATRIX, kinds), _roof(usable, VECTOR, kinds)) if roof]
    flats.sort(key=lambda roof: roof.median, reverse=True)
    return FamilyRoofs(_roof(usable, MEMORY), _roof(usable, CACHE), tuple(flats))


def _roof(ceilings: Sequence[Ceiling], roof: str, kinds: Iterable[str] | None = None) -> Roof | None:
    best = [
        ceiling
        for source in SOURCES
        if (ceiling := RoofSet([other for other in ceilings if other.source == source]).best(roof, kinds))
    ]
    return Roof(best[0], tuple(best[1:])) if best else None


@dataclass(frozen=True)
class Axes:
    """Cells of a plot, from the top left. A decade of rate ends in the middle of a row, one of intensity in a column.

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
    def per_decade(self) -> tuple[float, float]:
        """Columns and rows."""
        return (self.columns - 1) / (self.right - self.left), (self.rows - 1 - self.above) / (self.top - self.bottom)

    @property
    def steepness(self) -> float:
        """Rows that a slope climbs in a column."""
        columns, rows = self.per_decade
        return rows / columns

    def column(self, intensity: float) -> int:
        """May lie outside, as a row may."""
        return floor((_log(intensity) - self.left) * self.per_decade[0] + 0.5)

    def row(self, rate: float) -> int:
        return self.rows - 1 - self.level(rate) // THIRDS

    def level(self, rate: float) -> int:
        """Thirds of a row, from the lower end of the lowest."""
        return floor((self.rows - self.depth(rate)) * THIRDS)

    def depth(self, rate: float) -> float:
        """Rows, from the upper end of the highest."""
        return self.rows - 0.5 - (_log(rate) - self.bottom) * self.per_decade[1]

    def intensity(self, column: float) -> float:
        """At the middle of a column."""
        return float(10 ** (self.left + column / self.per_decade[0]))

    def rate(self, row: float) -> float:
        """At the middle of a row."""
        return float(10 ** (self.bottom + (self.rows - 1 - row) / self.per_decade[1]))

    def ticks(self) -> tuple[dict[int, str], dict[int, str]]:
        """The decades of intensity by column, and of rate by row."""
        across = {self.column(10.0**power): decade(power) for power in range(self.left, self.right + 1)}
        return across, {self.row(10.0**power): decade(power) for power in range(self.bottom, self.top + 1)}


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


def _log(value: float) -> float:
    """Of what cannot be drawn, so far outside that no axis reaches it."""
    return min(max(log10(value), -99.0), 99.0) if value > 0 else -99.0
