"""Roofs as lines of cells, and the texts that say what each is and how it is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import floor

from gpulab.protocol.ceiling import CACHE, MEASURED, MEMORY, Ceiling
from gpulab.views.roofline.axes import THIRDS, FamilyRoofs
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
    """What a roof may be called, the best first, and where; the best also names what is `beside` the ceiling."""

    ceiling: Ceiling
    beside: tuple[Ceiling, ...]
    texts: tuple[str, ...]
    anchors: tuple[Anchor, ...]
    style: str


def per_second(value: float, unit: str) -> str:
    """Such as 29.1 GFLOP/s."""
    text = rate(value)
    return f"{text}{unit}" if text[-1].isalpha() else f"{text} {unit}"


def name(ceiling: Ceiling) -> str:
    return ceiling.roof if _is_slope(ceiling) else f"{ceiling.kind} {ceiling.roof}"


def aside(ceiling: Ceiling) -> str:
    """What another source says, in brackets: derived 4.81 TB/s."""
    return f"{ceiling.source} {per_second(ceiling.median, ceiling.unit)}"


def draw_roofs(plot: Plot, roofs: FamilyRoofs) -> list[Label]:
    """Draw every roof, the one that matters most last; give their labels, the one that matters most first.

    What another source says of a roof is a dim line where that has a place of its own, else a part of its label.
    """
    steepest = max((roof.median for roof in (roofs.memory, roofs.cache) if roof), default=0.0)
    top = roofs.flats[0].ceiling
    hidden = [
        roof for roof in roofs.flats[1:] if roof.median * _ALIKE >= top.median or not _apart(plot, roof.ceiling, top)
    ]
    # A CPU's vector units are taken for as fast as its products, and then there is nothing to add.
    plot.unlabelled += [
        ceiling for roof in hidden for ceiling in (roof.ceiling, *roof.others) if ceiling.median != top.median
    ]
    shown = [roof for roof in (*reversed(roofs.flats), roofs.cache, roofs.memory) if roof and roof not in hidden]
    lines = [roof.ceiling for roof in shown]
    for ceiling in (other for roof in shown for other in roof.others):
        lines += [ceiling] * all(_apart(plot, ceiling, line) for line in lines)
    flat_rows = {plot.axes.row(ceiling.median) for ceiling in lines if not _is_slope(ceiling)}
    labels: dict[str, list[Label]] = {ROOF_STYLE: [], DIM: []}
    for roof in shown:
        for ceiling in (*roof.others, roof.ceiling):
            if ceiling not in lines:
                continue
            main = ceiling is roof.ceiling
            style = ROOF_STYLE if main else DIM
            cells = _draw(plot, ceiling, top.median if main else roofs.flats[0].most, steepest, style)
            beside = tuple(other for other in roof.others if other not in lines) if main else ()
            texts = _texts(ceiling, beside)
            left = ceiling.roof == CACHE or not roofs.cache or ceiling.median > roof.median
            anchors = _beside(cells, left=left) if _is_slope(ceiling) else _along(plot, cells, flat_rows)
            labels[style].append(Label(ceiling, beside, texts if main else texts[:1], anchors, style))
    return labels[ROOF_STYLE][::-1] + labels[DIM][::-1]


def _is_slope(ceiling: Ceiling) -> bool:
    return ceiling.roof in (MEMORY, CACHE)


def _apart(plot: Plot, first: Ceiling, second: Ceiling) -> bool:
    """Whether two lines are distinct to the eye: flat ones by their rows, slopes by a row, or by two dots."""
    axes = plot.axes
    if _is_slope(first) != _is_slope(second):
        return True
    if _is_slope(first):
        return abs(axes.depth(first.median) - axes.depth(second.median)) >= (1 if plot.marks.steep else _TWO_DOTS)
    return axes.row(first.median) != axes.row(second.median)


def _draw(plot: Plot, ceiling: Ceiling, top: float, steepest: float, style: str) -> list[tuple[Cell, str]]:
    """One line; its cells, also where dots are finer."""
    sloped, median = _is_slope(ceiling), ceiling.median
    line = _slope(plot, median, top) if sloped else _flat(plot, median, median / steepest)
    if sloped and not plot.marks.steep:
        _dots(plot, ceiling, top, style)
        return line
    for index, (cell, glyph) in enumerate(line):
        if ceiling.source != MEASURED:
            if index % 2 == 0:
                plot.lines[cell] = (plot.marks.dot, style)
        elif ceiling.roof != CACHE or index % 3 < 2:
            plot.lines[cell] = (glyph, style)
    return line


def _slope(plot: Plot, per_byte: float, top: float) -> list[tuple[Cell, str]]:
    """From the left up to the flat roof: a cell a column, or a cell a row where it climbs faster than that."""
    axes, marks = plot.axes, plot.marks
    line = []
    if axes.steepness <= 1:
        for column in range(min(axes.column(top / per_byte) + 1, axes.columns)):
            value = min(per_byte * axes.intensity(column), top)
            level = axes.level(value)
            glyph = marks.steep if axes.steepness > _STEEP and value < top else marks.thirds[level % THIRDS]
            line.append(((axes.rows - 1 - level // THIRDS, column), glyph))
    else:
        for row in range(axes.rows - 1, axes.row(top), -1):
            line.append(((row, axes.column(axes.rate(row) / per_byte)), marks.steep))
    return [(cell, glyph) for cell, glyph in line if plot.inside(*cell)]


def _dots(plot: Plot, ceiling: Ceiling, top: float, style: str) -> None:
    """A slope that has dots: a line where it was measured, dashes for a cache, few dots for another source."""
    last: int | None = None
    axes, measured = plot.axes, ceiling.source == MEASURED
    start, end = axes.depth(ceiling.median * axes.intensity(0)), axes.depth(top)
    for column in range(2 * axes.columns):
        depth = start - axes.steepness * (column - 0.5) / 2
        if depth < end:
            break
        row = floor(4 * depth)
        first = row if last is None else max(row, last - 1)
        shown = column % 4 == 0 if not measured else ceiling.roof != CACHE or column % 6 < 4
        for dot_row in range(row, first + 1 if measured else row + 1) if shown else ():
            plot.dot(dot_row, column, style)
        last = row


def _flat(plot: Plot, median: float, start: float) -> list[tuple[Cell, str]]:
    axes = plot.axes
    level = axes.level(median)
    row, glyph = axes.rows - 1 - level // THIRDS, plot.marks.thirds[level % THIRDS]
    first = max(0, axes.column(start))
    return [((row, column), glyph) for column in range(first, axes.columns) if plot.inside(row, column)]


def _texts(ceiling: Ceiling, beside: Sequence[Ceiling]) -> tuple[str, ...]:
    value = per_second(ceiling.median, ceiling.unit)
    kind = [ceiling.kind] if _is_slope(ceiling) and ceiling.kind else []
    source = [ceiling.source] if ceiling.source != MEASURED else []
    others = [aside(other) for other in beside]
    brackets = (kind + source + others, source + others, kind + source)
    full = [f"{value} {name(ceiling)} ({', '.join(parts)})" for parts in brackets if parts]
    short = [] if source else [f"{value} {name(ceiling)}"]
    return tuple(dict.fromkeys([*full, *short, " ".join([value, *source])]))


def _along(plot: Plot, line: Sequence[tuple[Cell, str]], flat_rows: Collection[int]) -> tuple[Anchor, ...]:
    """Above or below a flat roof, where that is no other's row, or as the last resort on it."""
    if not line:
        return ()
    row, first = line[0][0]
    rows = [other for other in (row - 1, row + 1) if other not in flat_rows]
    ends = range(plot.axes.columns - 1, first, -3)
    return tuple(Anchor(label_row, end, 1) for label_row in (*rows, row) for end in ends)


def _beside(line: Sequence[tuple[Cell, str]], *, left: bool) -> tuple[Anchor, ...]:
    """Left or right of a slope, its lower middle first."""
    rows: dict[int, list[int]] = defaultdict(list)
    for (row, column), _ in line:
        rows[row].append(column)
    order = sorted(rows, key=lambda row: abs(row - (min(rows) + 2 * max(rows)) / 3))
    to_left = [Anchor(row, min(rows[row]) - 2, 1) for row in order]
    to_right = [Anchor(row, max(rows[row]) + 2) for row in order]
    return tuple(to_left + to_right if left else to_right + to_left)
