"""Where everything of a roofline goes: points first, then what the roofs are called, then what the points are.

Nothing is drawn here. What was placed can be asked for, so that tests need not read pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase

from gpulab.analysis.roofline import Point, Roofline
from gpulab.views.roofline.axes import Axes, FamilyRoofs
from gpulab.views.roofline.canvas import fit
from gpulab.views.roofline.placing import BADGE, BY_COUNT, CEILING, DIM, HEAD, NAME, POINT, Anchor, Cell, Placed, Plot
from gpulab.views.roofline.roofs import aside, draw_roofs
from gpulab.views.text import Glyphs

_ARROW = "magenta"
_LONGEST_NAME = 18
COUNTED = "◦"
"""Marks the intensity of a point by the bytes that were counted."""
_LETTERS = ascii_uppercase + ascii_lowercase


def letter(index: int) -> str:
    """A to Z, a to z, and * for all that follow."""
    return _LETTERS[index] if index < len(_LETTERS) else "*"


def letters(indices: Iterable[int]) -> str:
    return ",".join(map(letter, indices))


def plot_of(roofline: Roofline, roofs: FamilyRoofs, axes: Axes, family: str, glyphs: Glyphs) -> Plot:
    """All that is inside the axes."""
    plot = Plot(axes, glyphs)
    labels = draw_roofs(plot, roofs)
    points = _place_points(plot, roofline.points, family)
    _place_counted(plot, roofline.points, family)
    for start, end in roofline.arrows:
        if start in points and end in points:
            _arrow(plot, points[start], points[end])
    for label in labels:
        placed = plot.label(CEILING, label.texts, label.anchors, label.style, clear=label.style == DIM)
        plot.unlabelled += [] if placed else [label.ceiling]
        plot.unlabelled += [ceiling for ceiling in label.beside if placed is None or aside(ceiling) not in placed.text]
    _names(plot, roofline.points, family)
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
        text = letter(indices[0]) if len(indices) == 1 else str(len(indices)) if len(indices) < 10 else "+"
        of_family = any(points[index].family == family for index in indices)
        mark = plot.place(POINT, *cell, text, "bold" if of_family else DIM, tuple(indices))
        by_index |= dict.fromkeys(indices, mark)
    for index, cell in outside:
        if badge := _badge(plot, index, *cell):
            by_index[index] = badge
    return by_index


def _place_counted(plot: Plot, points: Sequence[Point], family: str) -> None:
    """A mark in the row of a point where its intensity would be by the bytes that were counted, if there is room."""
    for index, point in enumerate(points):
        if point.is_drawable and point.bytes_ratio and point.family == family:
            cell = plot.axes.row(point.rate), plot.axes.column((point.intensity or 0.0) / point.bytes_ratio)
            if plot.inside(*cell) and plot.free(*cell, 1):
                plot.place(BY_COUNT, *cell, COUNTED, "", (index,))


def _badge(plot: Plot, index: int, row: int, column: int) -> Placed | None:
    """A letter and an arrow at the edge where the point left the frame, or as near to there as there is room."""
    axes, marks, name = plot.axes, plot.marks, letter(index)
    if column < 0:
        text = marks.off_left + name
    elif column >= axes.columns:
        text = name + marks.off_right
    else:
        text = name + (marks.off_top if row < 0 else marks.off_bottom)
    at = max(0, min(row, axes.rows - 1)), max(0, min(column, axes.columns - 2))
    if 0 <= column < axes.columns:
        anchors = [Anchor(at[0], other) for other in sorted(range(axes.columns), key=lambda other: abs(other - at[1]))]
    else:
        anchors = [Anchor(other, at[1]) for other in sorted(range(axes.rows), key=lambda other: abs(other - at[0]))]
    free = (anchor for anchor in anchors if plot.free(anchor.row, anchor.column - 1, len(text) + 2, margin=1))
    place = next(free, None)
    return plot.place(BADGE, place.row, place.column, text, "bold", (index,)) if place else None


def _arrow(plot: Plot, start: Placed, end: Placed) -> None:
    """Dots between two points, and a head beside the second; nothing where there is no room for a head."""
    rows, columns = end.row - start.row, end.column - start.column
    marks = plot.marks
    beside = (
        (end.row, end.column - 1 if columns > 0 else end.column + end.width),
        marks.right if columns > 0 else marks.left,
    )
    over = (end.row - 1 if rows > 0 else end.row + 1, end.column), marks.down if rows > 0 else marks.up
    choices = [beside] * bool(columns) + [over] * bool(rows)
    if abs(columns) < 2 * abs(rows):  # A cell is twice as high as it is wide.
        choices.reverse()
    (row, column), head = next(((cell, head) for cell, head in choices if plot.free(*cell, 1)), ((-1, -1), ""))
    if not head:
        return
    plot.place(HEAD, row, column, head, _ARROW)
    rows, columns = row - start.row, column - start.column
    steps = max(abs(rows), abs(columns))
    for at in range(steps - 2, 0, -2):
        cell = start.row + round(rows * at / steps), start.column + round(columns * at / steps)
        plot.lines[cell] = marks.trail, _ARROW


def _names(plot: Plot, points: Sequence[Point], family: str) -> None:
    """Those of the family first: what others are called matters less."""
    marks = sorted(plot.of_kinds(POINT, BADGE), key=lambda mark: (mark.style == DIM, mark.points))
    for mark in marks:
        name = letters(mark.points) if len(mark.points) > 1 else points[mark.points[0]].variant
        text = fit(name, _LONGEST_NAME, plot.glyphs)
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
