"""Roofs as lines of cells, and the texts that say what each is and how it is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import floor

from gpulab.model.ceilings import CACHE, MEASURED, MEMORY, Ceiling
from gpulab.views.roofline.axes import THIRDS, House
from gpulab.views.roofline.placing import DIM, Anchor, Cell, Plot
from gpulab.views.text import rate

ROOF_STYLE = "cyan"
_STEEP = 0.7
"""Rows in a column from which a diagonal looks smoother than thirds of a row do."""
_TWO_DOTS = 0.5
"""In rows: slopes nearer to each other than this are one line to the eye."""
_ALIKE = 1.1
"""Flat roofs nearer to each other than this are one line."""


@dataclass(frozen=True)
class Label:
    """What a roof may be called, the best first, and where; at best that also tells what is `beside` the ceiling."""

    ceiling: Ceiling
    beside: tuple[Ceiling, ...]
    texts: tuple[str, ...]
    anchors: tuple[Anchor, ...]
    style: str


def per_second(value: float, unit: str) -> str:
    """Such as 29.1 GFLOP/s."""
    told = rate(value)
    return f"{told}{unit}" if told[-1].isalpha() else f"{told} {unit}"


def name(of: Ceiling) -> str:
    return of.roof if _is_slope(of) else f"{of.kind} {of.roof}"


def aside(of: Ceiling) -> str:
    """What another source says, in brackets: derived 4.81 TB/s."""
    return f"{of.source} {per_second(of.best, of.unit)}"


def draw(to: Plot, of: House) -> list[Label]:
    """Draw every roof, the one that matters most last; give their labels, the one that matters most first.

    What another source says of a roof is a dim line where that has a place of its own, else a part of its label.
    """
    starts = max((one.best for one in (of.memory, of.cache) if one), default=0.0)
    top = of.flats[0].ceiling
    hidden = [one for one in of.flats[1:] if one.best * _ALIKE >= top.best or not _apart(to, one.ceiling, top)]
    # A CPU's vector units are taken for as fast as its products, and then nothing is left to tell.
    to.untold += [one for roof in hidden for one in (roof.ceiling, *roof.others) if one.best != top.best]
    shown = [one for one in (*reversed(of.flats), of.cache, of.memory) if one and one not in hidden]
    lines = [one.ceiling for one in shown]
    for one in (each for roof in shown for each in roof.others):
        lines += [one] * all(_apart(to, one, line) for line in lines)
    flat_rows = {to.axes.row(one.best) for one in lines if not _is_slope(one)}
    found: dict[str, list[Label]] = {ROOF_STYLE: [], DIM: []}
    for roof in shown:
        for one in (*roof.others, roof.ceiling):
            if one not in lines:
                continue
            main = one is roof.ceiling
            style = ROOF_STYLE if main else DIM
            cells = _draw(to, one, top.best if main else of.flats[0].most, starts, style)
            beside = tuple(each for each in roof.others if each not in lines) if main else ()
            texts = _texts(one, beside)
            left = one.roof == CACHE or not of.cache or one.best > roof.best
            anchors = _beside(cells, left=left) if _is_slope(one) else _along(to, cells, flat_rows)
            found[style].append(Label(one, beside, texts if main else texts[:1], anchors, style))
    return found[ROOF_STYLE][::-1] + found[DIM][::-1]


def _is_slope(of: Ceiling) -> bool:
    return of.roof in (MEMORY, CACHE)


def _apart(to: Plot, one: Ceiling, other: Ceiling) -> bool:
    """Whether two lines can be told apart: flat ones by their rows, slopes by a row, or by two dots."""
    if _is_slope(one) != _is_slope(other):
        return True
    if _is_slope(one):
        return abs(to.axes.depth(one.best) - to.axes.depth(other.best)) >= (1 if to.marks.steep else _TWO_DOTS)
    return to.axes.row(one.best) != to.axes.row(other.best)


def _draw(to: Plot, one: Ceiling, top: float, starts: float, style: str) -> list[tuple[Cell, str]]:
    """One line; its cells, also where dots are finer."""
    line = _slope(to, one.best, top) if _is_slope(one) else _flat(to, one.best, one.best / starts)
    if _is_slope(one) and not to.marks.steep:
        _dots(to, one, top, style)
        return line
    for at, (cell, glyph) in enumerate(line):
        if one.source != MEASURED:
            if at % 2 == 0:
                to.lines[cell] = (to.marks.dot, style)
        elif one.roof != CACHE or at % 3 < 2:
            to.lines[cell] = (glyph, style)
    return line


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
    start, end = to.axes.depth(of.best * to.axes.intensity(0)), to.axes.depth(top)
    for at in range(2 * to.axes.columns):
        depth = start - to.axes.steepness * (at - 0.5) / 2
        if depth < end:
            break
        row = floor(4 * depth)
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


def _texts(of: Ceiling, beside: Sequence[Ceiling]) -> tuple[str, ...]:
    value = per_second(of.best, of.unit)
    kind = [of.kind] if _is_slope(of) and of.kind else []
    source = [of.source] if of.source != MEASURED else []
    told = [aside(one) for one in beside]
    brackets = (kind + source + told, source + told, kind + source)
    full = [f"{value} {name(of)} ({', '.join(some)})" for some in brackets if some]
    return tuple(dict.fromkeys([*full, *([] if source else [f"{value} {name(of)}"]), " ".join([value, *source])]))


def _along(to: Plot, line: Sequence[tuple[Cell, str]], flat_rows: Collection[int]) -> tuple[Anchor, ...]:
    """Above or below a flat roof, where that is no other's row, or as the last resort on it."""
    if not line:
        return ()
    row, first = line[0][0]
    rows = [at for at in (row - 1, row + 1) if at not in flat_rows]
    return tuple(Anchor(at, end, 1) for at in (*rows, row) for end in range(to.axes.columns - 1, first, -3))


def _beside(line: Sequence[tuple[Cell, str]], *, left: bool) -> tuple[Anchor, ...]:
    """Left or right of a slope, its lower middle first."""
    rows: dict[int, list[int]] = defaultdict(list)
    for (row, column), _ in line:
        rows[row].append(column)
    order = sorted(rows, key=lambda row: abs(row - (min(rows) + 2 * max(rows)) / 3))
    to_left = [Anchor(row, min(rows[row]) - 2, 1) for row in order]
    to_right = [Anchor(row, max(rows[row]) + 2) for row in order]
    return tuple(to_left + to_right if left else to_right + to_left)
