"""Logarithmic and linear axes in cells, with ticks at round numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, exp, floor, log, log10
from typing import TYPE_CHECKING, TypeAlias

from gpulab.core.units import seconds

if TYPE_CHECKING:
    from gpulab.draw.figure import Scale

_ROUND = (1.0, 2.0, 5.0, 10.0)
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_GAP = 2
"""Cells between two labels."""
_NEARLY = 0.1
"""Cells that an end may lie outside."""
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_FAR = 99.0
"""Decades: no axis reaches so far."""


@dataclass(frozen=True)
class LogAxis:
    """From `low` at the first cell to `high` at the last; both above zero."""

    low: float
    high: float
    cells: int

    @cached_property
    def per_decade(self) -> float:
        return (self.cells - 1) / (log10(self.high) - log10(self.low))

    def position(self, value: float) -> float:
        """In cells from the middle of the first; of what has no logarithm, far outside."""
        decades = log10(value) if value > 0 else -_FAR
        return (min(decades, _FAR) - log10(self.low)) * self.per_decade

    def cell(self, value: float) -> int:
        """May lie outside."""
        return floor(self.position(value) + 0.5)

    def value(self, position: float) -> float:
        """The inverse of `position`."""
        return float(10 ** (log10(self.low) + position / self.per_decade))

    def inside(self, value: float) -> int:
        """The nearest cell of the axis."""
        return min(max(self.cell(value), 0), self.cells - 1)

    def ticks(self, label: Callable[[float], str]) -> list[tuple[int, str]]:
        """(the cell where a label begins, the label), as many as have room."""
        chosen: list[tuple[int, str]] = []
        for values in self._candidates():
            row = _placed([(self.cell(value), label(value)) for value in values], self.cells)
            if len(row) == len(values) >= len(chosen):
                chosen = row
        return chosen

    def _candidates(self) -> list[list[float]]:
        """Round numbers inside, from few to many."""
        # ends that are so far apart have ticks at 1, 2 and 5 times a power of ten
        if self.high / self.low >= 4.0:
            powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            sets = [
                [10.0**power * factor for power in powers for factor in factors]
                for factors in ((1,), (1, 2, 5))
            ]
            every_other = [sets[0][::step] for step in (3, 2)]
            return [self._inside(values) for values in (*every_other, *sets)]
        span = self.high - self.low
        candidates = []
        for fewest in (2, 3, 4, 6, 8):
            step = _round_up(span / fewest)
            first = ceil(self.low / step)
            candidates.append(
                self._inside([step * place for place in range(first, floor(self.high / step) + 1)])
            )
        return candidates

    def _inside(self, values: list[float]) -> list[float]:
        return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]


@dataclass(frozen=True)
class LinearAxis:
    """From `low` at the first cell to `high` at the last."""

    low: float
    high: float
    cells: int

    def position(self, value: float) -> float:
        """In cells from the middle of the first."""
        return (value - self.low) / (self.high - self.low) * (self.cells - 1)

    def value(self, position: float) -> float:
        """The inverse of `position`."""
        return self.low + position / (self.cells - 1) * (self.high - self.low)

    def inside(self, value: float) -> int:
        """The nearest cell of the axis."""
        return min(max(floor(self.position(value) + 0.5), 0), self.cells - 1)

    def ticks(self, label: Callable[[float], str]) -> list[tuple[int, str]]:
        """(the cell where a label begins, the label), at about four round numbers."""
        step = _round_up((self.high - self.low) / 4)
        places = range(ceil(self.low / step), floor(self.high / step) + 1)
        labels = [(self.inside(place * step), label(place * step)) for place in places]
        return _placed(labels, self.cells)


Axis: TypeAlias = "LogAxis | LinearAxis"


def axis_of(scale: Scale, cells: int) -> Axis:
    """The scale over so many cells."""
    kind = LogAxis if scale.logarithmic else LinearAxis
    return kind(scale.low, scale.high, cells)


def evened(scale: Scale, cells: int, least: int) -> Scale:
    """Move the ends of a scale in decades outwards, so that all its ticks are as many whole cells
    apart, at least `least`, and as little as possible stays empty.
    """
    if not scale.logarithmic or len(scale.ticks) < 2:
        return scale
    first, last = scale.ticks[0], cells - 1
    found = []
    for every in range(1, len(scale.ticks)):
        for apart in range(last, least - 1, -1):
            per_decade = apart / every
            below = ceil(log10(first / scale.low) * per_decade - _NEARLY)
            above = ceil(log10(scale.high / first) * per_decade - _NEARLY)
            if below + above <= last:
                low = first / 10 ** (below / per_decade)
                high = first * 10 ** ((last - below) / per_decade)
                powers = decades(low, high)
                ticks = [tick for tick in powers if round(log10(tick / first)) % every == 0]
                # as bad as so many empty decades: a decade more from one tick to the next
                cost = log10(high / low) + 0.8 * every
                found.append((cost, replace(scale, low=low, high=high, ticks=ticks)))
                break
    return min(found, key=lambda entry: entry[0])[1] if found else scale


def decade(value: float) -> str:
    """A power of ten, such as 0.01, 10, 1k, 100G."""
    power = floor(log10(value) + 0.5)
    if power < 0:
        return f"{10.0**power:g}"
    if power >= len(_PREFIXES) * 3:
        return f"1e{power}"
    return f"{10 ** (power % 3)}{_PREFIXES[power // 3]}"


def decades(low: float, high: float) -> list[float]:
    first, last = floor(log10(low) + 0.999), floor(log10(high) + 0.001)
    return [10.0**power for power in range(first, last + 1)]


def tick_seconds(value: float) -> str:
    """Without digits that a tick does not need: 5 µs, not 5.00 µs."""
    number, unit = seconds(value).split(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


def around(values: list[float], room: float) -> tuple[float, float]:
    """Ends of an axis that holds the values, with so much of their distance on both sides, at least
    1 %.
    """
    low, high = log(min(values)), log(max(values))
    extra = max((high - low) * room, 0.01)
    return exp(low - extra), exp(high + extra)


def outwards(low: float, high: float) -> tuple[float, float]:
    """The ends moved outwards to 1, 2 or 5 times a power of ten, where they stay while values
    move.
    """
    below = max(value for value in _series(low) if value <= low * 1.0001)
    above = min(value for value in _series(high) if value >= high * 0.9999)
    return below, above


def _series(value: float) -> list[float]:
    power = floor(log10(value))
    return [
        10.0**exponent * factor for exponent in (power - 1, power, power + 1) for factor in _ROUND
    ]


def _round_up(step: float) -> float:
    power = 10.0 ** floor(log10(step))
    return next((factor * power for factor in _STEPS if factor * power >= step * 0.999), 10 * power)


def _placed(labels: list[tuple[int, str]], cells: int) -> list[tuple[int, str]]:
    """Labels around their cells; those that would touch the one before are left out."""
    row: list[tuple[int, str]] = []
    end = -_GAP
    for cell, text in labels:
        start = min(max(0, cell - len(text) // 2), cells - len(text))
        if start >= end + _GAP:
            row.append((start, text))
            end = start + len(text)
    return row
