"""Where everything of a roofline goes: roofs as lines, points, and what they are called.

Nothing is drawn here. What was placed can be asked for, so that tests need not read pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import floor

from gpulab.core.payloads import CACHE, MEASURED, MEMORY
from gpulab.core.units import rate
from gpulab.draw.canvas import fit
from gpulab.draw.chart import letter_of
from gpulab.features.roofline.axes import (
    BADGE,
    BY_COUNT,
    CEILING,
    DIM,
    HEAD,
    NAME,
    POINT,
    THIRDS,
    Anchor,
    Axes,
    Cell,
    FamilyRoofs,
    Placed,
    Plot,
)
from gpulab.features.roofline.bound import Point, Roofline
from gpulab.features.roofline.events import Ceiling

ROOF_STYLE = "cyan"
_THIRDS = "▁─▔"
"""A flat line in the lower, the middle and the upper third of a row."""
_TWO_DOTS = 0.5
"""In rows: slopes nearer to each other than this are one line to the eye."""
_ALIKE = 1.1
"""Flat roofs nearer to each other than this are one line."""


@dataclass(frozen=True)
class Label:
    """What a roof may be called, the best first, and where; the best also names what is `beside`
    the ceiling.
    """

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
    """Draw every roof, the one that matters most last; give their labels, the one that matters most
    first.

    What another source says of a roof is a dim line where that has a place of its own, else a part
    of its label.
    """
    steepest = max((roof.median for roof in (roofs.memory, roofs.cache) if roof), default=0.0)
    top = roofs.flats[0].ceiling
    hidden = [
        roof
        for roof in roofs.flats[1:]
        if roof.median * _ALIKE >= top.median or not _apart(plot, roof.ceiling, top)
    ]
    # A CPU's vector units are taken for as fast as its products, and then there is nothing to add.
    plot.unlabelled += [
        ceiling
        for roof in hidden
        for ceiling in (roof.ceiling, *roof.others)
        if ceiling.median != top.median
    ]
    shown = [
        roof
        for roof in (*reversed(roofs.flats), roofs.cache, roofs.memory)
        if roof and roof not in hidden
    ]
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
            cells = _draw(
                plot, ceiling, top.median if main else roofs.flats[0].most, steepest, style
            )
            beside = tuple(other for other in roof.others if other not in lines) if main else ()
            texts = _texts(ceiling, beside)
            left = ceiling.roof == CACHE or not roofs.cache or ceiling.median > roof.median
            anchors = (
                _beside(cells, left=left) if _is_slope(ceiling) else _along(plot, cells, flat_rows)
            )
            labels[style].append(
                Label(ceiling, beside, texts if main else texts[:1], anchors, style)
            )
    return labels[ROOF_STYLE][::-1] + labels[DIM][::-1]


def _is_slope(ceiling: Ceiling) -> bool:
    return ceiling.roof in (MEMORY, CACHE)


def _apart(plot: Plot, first: Ceiling, second: Ceiling) -> bool:
    """Whether two lines are distinct to the eye: flat ones by their rows, slopes by two dots."""
    axes = plot.axes
    if _is_slope(first) != _is_slope(second):
        return True
    if _is_slope(first):
        return abs(axes.depth(first.median) - axes.depth(second.median)) >= _TWO_DOTS
    return axes.row(first.median) != axes.row(second.median)


def _draw(plot: Plot, ceiling: Ceiling, top: float, steepest: float, style: str) -> list[Cell]:
    """One line; its cells, also where dots are finer."""
    if _is_slope(ceiling):
        _dots(plot, ceiling, top, style)
        return _slope(plot, ceiling.median, top)
    line = _flat(plot, ceiling.median, ceiling.median / steepest)
    measured = ceiling.source == MEASURED
    mark = _THIRDS[plot.axes.level(ceiling.median) % THIRDS] if measured else "·"
    for cell in line if measured else line[::2]:
        plot.lines[cell] = (mark, style)
    return line


def _slope(plot: Plot, per_byte: float, top: float) -> list[Cell]:
    """From the left up to the flat roof: a cell a column, or a cell a row where it climbs faster
    than that.
    """
    axes = plot.axes
    if axes.steepness > 1:
        rows = range(axes.rows - 1, axes.row(top), -1)
        line = [(row, axes.column(axes.rate(row) / per_byte)) for row in rows]
    else:
        columns = range(min(axes.column(top / per_byte) + 1, axes.columns))
        line = [
            (axes.row(min(per_byte * axes.intensity(column), top)), column) for column in columns
        ]
    return [cell for cell in line if plot.inside(*cell)]


def _dots(plot: Plot, ceiling: Ceiling, top: float, style: str) -> None:
    """A slope that has dots: a line where it was measured, dashes for a cache, few dots for another
    source.
    """
    last: int | None = None
    axes, measured = plot.axes, ceiling.source == MEASURED
    start, end = axes.depth(ceiling.median * axes.intensity(0)), axes.depth(top)
    for column in range(2 * axes.columns):
        depth = start - axes.steepness * (column - 0.5) / 2
        if depth < end:
            break
        row = floor(4 * depth)
        first = row if last is None else max(row, last - 1)
        if not measured:
            if column % 4 == 0:
                plot.dot(row, column, style)
        elif ceiling.roof != CACHE or column % 6 < 4:
            for dot_row in range(row, first + 1):
                plot.dot(dot_row, column, style)
        last = row


def _flat(plot: Plot, median: float, start: float) -> list[Cell]:
    row, first = plot.axes.row(median), max(0, plot.axes.column(start))
    return [(row, column) for column in range(first, plot.axes.columns) if plot.inside(row, column)]


def _texts(ceiling: Ceiling, beside: Sequence[Ceiling]) -> tuple[str, ...]:
    value = per_second(ceiling.median, ceiling.unit)
    kind = [ceiling.kind] if _is_slope(ceiling) and ceiling.kind else []
    source = [ceiling.source] if ceiling.source != MEASURED else []
    others = [aside(other) for other in beside]
    brackets = (kind + source + others, source + others, kind + source)
    full = [f"{value} {name(ceiling)} ({', '.join(parts)})" for parts in brackets if parts]
    short = [] if source else [f"{value} {name(ceiling)}"]
    return tuple(dict.fromkeys([*full, *short, " ".join([value, *source])]))


def _along(plot: Plot, line: Sequence[Cell], flat_rows: Collection[int]) -> tuple[Anchor, ...]:
    """Above or below a flat roof, where that is no other's row, or as the last resort on it."""
    if not line:
        return ()
    row, first = line[0]
    rows = [other for other in (row - 1, row + 1) if other not in flat_rows]
    ends = range(plot.axes.columns - 1, first, -3)
    return tuple(Anchor(label_row, end, 1) for label_row in (*rows, row) for end in ends)


def _beside(line: Sequence[Cell], *, left: bool) -> tuple[Anchor, ...]:
    """Left or right of a slope, its lower middle first."""
    rows: dict[int, list[int]] = defaultdict(list)
    for row, column in line:
        rows[row].append(column)
    order = sorted(rows, key=lambda row: abs(row - (min(rows) + 2 * max(rows)) / 3))
    to_left = [Anchor(row, min(rows[row]) - 2, 1) for row in order]
    to_right = [Anchor(row, max(rows[row]) + 2) for row in order]
    return tuple(to_left + to_right if left else to_right + to_left)


_ARROW = "magenta"
_LONGEST_NAME = 18
COUNTED = "◦"
"""Marks the intensity of a point by the bytes that were counted."""


def plot_of(roofline: Roofline, roofs: FamilyRoofs, axes: Axes, family: str) -> Plot:
    """All that is inside the axes."""
    plot = Plot(axes)
    labels = draw_roofs(plot, roofs)
    points = _place_points(plot, roofline.points, family)
    _place_counted(plot, roofline.points, family)
    for start, end in roofline.arrows:
        if start in points and end in points:
            _arrow(plot, points[start], points[end])
    for label in labels:
        placed = plot.label(
            CEILING, label.texts, label.anchors, label.style, clear=label.style == DIM
        )
        if placed is None:
            plot.unlabelled.append(label.ceiling)
        plot.unlabelled += [
            ceiling
            for ceiling in label.beside
            if placed is None or aside(ceiling) not in placed.text
        ]
    _names(plot, roofline.points)
    return plot


def _place_points(plot: Plot, points: Sequence[Point], family: str) -> dict[int, Placed]:
    """Place them, as one mark where they share a cell, and what is off the frame at its edge."""
    inside: dict[Cell, list[int]] = defaultdict(list)
    outside: list[tuple[int, Cell]] = []
    for index, point in enumerate(points):
        if not point.is_drawable:
            continue
        cell = (plot.axes.row(point.rate), plot.axes.column(point.intensity or 0.0))
        if plot.inside(*cell):
            inside[cell].append(index)
        elif point.family == family:
            outside.append((index, cell))
    by_index: dict[int, Placed] = {}
    for cell, indices in inside.items():
        text = letter_of(indices[0])
        if len(indices) > 1:
            text = str(len(indices)) if len(indices) < 10 else "+"
        of_family = any(points[index].family == family for index in indices)
        mark = plot.place(POINT, *cell, text, "bold" if of_family else DIM, tuple(indices))
        by_index |= dict.fromkeys(indices, mark)
    for index, cell in outside:
        if badge := _badge(plot, index, *cell):
            by_index[index] = badge
    return by_index


def _place_counted(plot: Plot, points: Sequence[Point], family: str) -> None:
    """A mark in the row of a point where its intensity would be by the bytes that were counted, if
    there is room.
    """
    for index, point in enumerate(points):
        if point.is_drawable and point.bytes_ratio and point.family == family:
            cell = (
                plot.axes.row(point.rate),
                plot.axes.column((point.intensity or 0.0) / point.bytes_ratio),
            )
            if plot.inside(*cell) and plot.free(*cell, 1):
                plot.place(BY_COUNT, *cell, COUNTED, "", (index,))


def _badge(plot: Plot, index: int, row: int, column: int) -> Placed | None:
    """A letter and an arrow at the edge where the point left the frame, or as near to there as
    there is room.
    """
    axes, name = plot.axes, letter_of(index)
    if column < 0:
        text = f"◂{name}"
    elif column >= axes.columns:
        text = f"{name}▸"
    else:
        text = f"{name}▲" if row < 0 else f"{name}▼"
    at = max(0, min(row, axes.rows - 1)), max(0, min(column, axes.columns - 2))
    if 0 <= column < axes.columns:
        anchors = [
            Anchor(at[0], other)
            for other in sorted(range(axes.columns), key=lambda other: abs(other - at[1]))
        ]
    else:
        anchors = [
            Anchor(other, at[1])
            for other in sorted(range(axes.rows), key=lambda other: abs(other - at[0]))
        ]
    free = (
        anchor
        for anchor in anchors
        if plot.free(anchor.row, anchor.column - 1, len(text) + 2, margin=1)
    )
    place = next(free, None)
    return plot.place(BADGE, place.row, place.column, text, "bold", (index,)) if place else None


def _arrow(plot: Plot, start: Placed, end: Placed) -> None:
    """Dots between two points, and a head beside the second; nothing where there is no room for a
    head.
    """
    rows, columns = end.row - start.row, end.column - start.column
    beside = (
        (end.row, end.column - 1 if columns > 0 else end.column + end.width),
        "→" if columns > 0 else "←",
    )
    over = (
        (end.row - 1 if rows > 0 else end.row + 1, end.column),
        "↓" if rows > 0 else "↑",
    )
    choices = [beside] * bool(columns) + [over] * bool(rows)
    if abs(columns) < 2 * abs(rows):  # A cell is twice as high as it is wide.
        choices.reverse()
    (row, column), head = next(
        ((cell, head) for cell, head in choices if plot.free(*cell, 1)), ((-1, -1), "")
    )
    if not head:
        return
    plot.place(HEAD, row, column, head, _ARROW)
    rows, columns = row - start.row, column - start.column
    steps = max(abs(rows), abs(columns))
    for at in range(steps - 2, 0, -2):
        cell = start.row + round(rows * at / steps), start.column + round(columns * at / steps)
        plot.lines[cell] = "∙", _ARROW


def _names(plot: Plot, points: Sequence[Point]) -> None:
    """Those of the family first: what others are called matters less."""
    marks = sorted(plot.of_kinds(POINT, BADGE), key=lambda mark: (mark.style == DIM, mark.points))
    for mark in marks:
        name = ",".join(map(letter_of, mark.points))
        if len(mark.points) == 1:
            name = points[mark.points[0]].variant
        text = fit(name, _LONGEST_NAME)
        if text:
            plot.label(NAME, (text,), _around(mark), DIM if mark.style == DIM else "", mark.points)


def _around(mark: Placed) -> list[Anchor]:
    row, first, last = mark.row, mark.column, mark.column + mark.width - 1
    return [
        Anchor(row, last + 2),
        Anchor(row, first - 2, 1),
        Anchor(row - 1, first, 0.5),
        Anchor(row + 1, first, 0.5),
        Anchor(row - 1, last + 1),
        Anchor(row + 1, last + 1),
        Anchor(row - 1, first - 1, 1),
        Anchor(row + 1, first - 1, 1),
        Anchor(row, last + 4),
    ]
