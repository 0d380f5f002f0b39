"""Roofs as lines of cells, and the texts that say what each is and how it is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

from gpulab.model.ceilings import CACHE, MEASURED, MEMORY, Ceiling
from gpulab.views.roofline.axes import THIRDS, House, Roof
from gpulab.views.roofline.placing import Anchor, Cell, Plot
from gpulab.views.text import rate

ROOF_STYLE, DIM = "cyan", "dim"
_STEEP = 0.7
"""Rows in a column from which a diagonal looks smoother than thirds of a row do."""


@dataclass(frozen=True)
class Label:
    """What a roof may be called, the best first, and where."""

    texts: tuple[str, ...]
    anchors: tuple[Anchor, ...]
    style: str


def per_second(value: float, unit: str) -> str:
    """Such as 29.1 GFLOP/s."""
    told = rate(value)
    return f"{told}{unit}" if told[-1].isalpha() else f"{told} {unit}"


def draw(to: Plot, of: House) -> list[Label]:
    """Draw every roof, the one that matters most last; give their labels, the one that matters most first."""
    starts = max((one.best for one in (of.memory, of.cache) if one), default=0.0)
    found: list[Label] = []
    hidden = [one for one in of.flats[1:] if to.axes.row(one.best) == to.axes.row(of.flats[0].best)]
    for roof in (*reversed(of.flats), of.cache, of.memory):
        if roof and roof not in hidden:
            found += reversed(list(_draw(to, roof, of, starts)))
    return found[::-1]


def _draw(to: Plot, roof: Roof, of: House, starts: float) -> Iterator[Label]:
    """One roof. What another source says of it is a line of its own where it is a row away or more."""
    ceiling, slopes = roof.ceiling, roof.ceiling.roof in (MEMORY, CACHE)
    apart = [one for one in roof.others if abs(to.axes.level(one.best) - to.axes.level(ceiling.best)) >= THIRDS]
    lines = []
    for one in (*apart, ceiling):
        style = ROOF_STYLE if one is ceiling else DIM
        top = of.flats[0].best if one is ceiling else of.flats[0].most
        line = _slope(to, one.best, top) if slopes else _flat(to, one.best, one.best / starts)
        lines.append(line)
        if slopes and not to.marks.steep:
            _dots(to, one, top, style)
            continue
        for at, (cell, glyph) in enumerate(line):
            if one.source != MEASURED:
                if at % 2 == 0:
                    to.lines[cell] = (to.marks.dot, style)
            elif one.roof != CACHE or at % 3 < 2:
                to.lines[cell] = (glyph, style)
    left = slopes and (ceiling.roof == CACHE or not of.cache)
    texts = _texts(ceiling, [one for one in roof.others if one not in apart])
    yield Label(texts, _anchors(to, lines[-1], slopes=slopes, left=left), ROOF_STYLE)
    for one, line in zip(apart, lines, strict=False):
        anchors = _anchors(to, line, slopes=slopes, left=one.best > ceiling.best)
        yield Label((f"{per_second(one.best, one.unit)} {one.source}",), anchors, DIM)


def _slope(to: Plot, per_byte: float, top: float) -> list[tuple[Cell, str]]:
    """From the left up to the flat roof: a cell a column, or a cell a row where it climbs faster than that."""
    axes, marks = to.axes, to.marks
    found = []
    if axes.steepness <= 1:
        for column in range(min(axes.column(top / per_byte) + 1, axes.columns)):
            value = min(per_byte * axes.intensity(column), top)
            level = axes.level(value)
            glyph = marks.steep if axes.steepness > _STEEP and value < top else marks.thirds[level % THIRDS]
            found.append(((axes.rows - 1 - level // THIRDS, column), glyph))
    else:
        for row in range(axes.rows - 1, axes.row(top), -1):
            found.append(((row, axes.column(axes.rate(row) / per_byte)), marks.steep))
    return [one for one in found if to.inside(*one[0])]


def _dots(to: Plot, of: Ceiling, top: float, style: str) -> None:
    """A slope that has dots: a line where it was measured, dashes for a cache, few dots for another source."""
    last: int | None = None
    for at in range(2 * to.axes.columns):
        rate = of.best * to.axes.intensity((at - 0.5) / 2)
        if rate > top:
            break
        row = floor(4 * to.axes.depth(rate))
        first = row if last is None else max(row, last - 1)
        shown = at % 4 == 0 if of.source != MEASURED else of.roof != CACHE or at % 6 < 4
        for each in range(row, first + 1 if of.source == MEASURED else row + 1) if shown else ():
            to.dot(each, at, style)
        last = row


def _flat(to: Plot, best: float, starts: float) -> list[tuple[Cell, str]]:
    level = to.axes.level(best)
    row, glyph = to.axes.rows - 1 - level // THIRDS, to.marks.thirds[level % THIRDS]
    first = max(0, to.axes.column(starts))
    return [((row, column), glyph) for column in range(first, to.axes.columns) if to.inside(row, column)]


def _texts(of: Ceiling, others: Sequence[Ceiling]) -> tuple[str, ...]:
    value = per_second(of.best, of.unit)
    slopes = of.roof in (MEMORY, CACHE)
    name = of.roof if slopes else f"{of.kind} {of.roof}"
    notes = [of.kind] if slopes and of.kind else []
    notes += [of.source] if of.source != MEASURED else []
    told = [f"{one.source} {per_second(one.best, one.unit)}" for one in others]
    full = [f"{value} {name} ({', '.join(some)})" for some in (notes + told, notes) if some]
    short = f"{value} {of.source}" if of.source != MEASURED else value
    return tuple(dict.fromkeys([*full, *([] if of.source != MEASURED else [f"{value} {name}"]), short]))


def _anchors(to: Plot, line: Sequence[tuple[Cell, str]], *, slopes: bool, left: bool) -> tuple[Anchor, ...]:
    """Above, below, or as the last resort on a flat roof; left or right of a slope, its lower middle first."""
    rows: dict[int, list[int]] = defaultdict(list)
    for (row, column), _ in line:
        rows[row].append(column)
    if not line:
        return ()
    if not slopes:
        row = line[0][0][0]
        ends = range(to.axes.columns - 1, min(rows[row]), -3)
        return tuple(Anchor(row + off, end, 1) for off in (-1, 1, 0) for end in ends)
    order = sorted(rows, key=lambda row: abs(row - (min(rows) + 2 * max(rows)) / 3))
    to_left = [Anchor(row, min(rows[row]) - 2, 1) for row in order]
    to_right = [Anchor(row, max(rows[row]) + 2) for row in order]
    return tuple(to_left + to_right if left else to_right + to_left)
