"""Where everything of a roofline goes: points first, then what the roofs are called, then what the points are.

Nothing is drawn here. What was placed can be asked for, so that tests need not read pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase

from gpulab.model.roofline import Point, Roofline
from gpulab.views.roofline.axes import Axes, House
from gpulab.views.roofline.canvas import fit
from gpulab.views.roofline.placing import BADGE, CEILING, DIM, HEAD, NAME, POINT, Anchor, Cell, Placed, Plot
from gpulab.views.roofline.roofs import aside, draw
from gpulab.views.text import Glyphs

_ARROW = "magenta"
_LONGEST_NAME = 18
_LETTERS = ascii_uppercase + ascii_lowercase


def letter(index: int) -> str:
    """A to Z, a to z, and * for all that follow."""
    return _LETTERS[index] if index < len(_LETTERS) else "*"


def letters(indices: Iterable[int]) -> str:
    return ",".join(map(letter, indices))


def plot(of: Roofline, under: House, axes: Axes, family: str, glyphs: Glyphs) -> Plot:
    """All that is inside the axes."""
    found = Plot(axes, glyphs)
    labels = draw(found, under)
    points = _points(found, of.points, family)
    for start, end in of.arrows:
        if start in points and end in points:
            _arrow(found, points[start], points[end])
    for label in labels:
        placed = found.label(CEILING, label.texts, label.anchors, label.style, clear=label.style == DIM)
        found.untold += [] if placed else [label.ceiling]
        found.untold += [one for one in label.beside if placed is None or aside(one) not in placed.text]
    _names(found, of.points, family)
    return found


def on_plot(point: Point) -> bool:
    """Whether it has a place below the roofs; a rate of bytes only has none."""
    return point.intensity is not None and point.intensity > 0 and point.rate > 0 and point.unit == "FLOP/s"


def _points(to: Plot, points: Sequence[Point], family: str) -> dict[int, Placed]:
    """Place them, as one mark where they share a cell, and what is off the frame at its edge."""
    inside: dict[Cell, list[int]] = defaultdict(list)
    outside: list[tuple[int, Cell]] = []
    for index, point in enumerate(points):
        if not on_plot(point):
            continue
        cell = (to.axes.row(point.rate), to.axes.column(point.intensity or 0.0))
        if to.inside(*cell):
            inside[cell].append(index)
        elif point.family == family:
            outside.append((index, cell))
    found: dict[int, Placed] = {}
    for cell, indices in inside.items():
        text = letter(indices[0]) if len(indices) == 1 else str(len(indices)) if len(indices) < 10 else "+"
        mine = any(points[index].family == family for index in indices)
        one = to.place(POINT, *cell, text, "bold" if mine else DIM, tuple(indices))
        found |= dict.fromkeys(indices, one)
    for index, cell in outside:
        if placed := _badge(to, index, *cell):
            found[index] = placed
    return found


def _badge(to: Plot, index: int, row: int, column: int) -> Placed | None:
    """A letter and an arrow at the edge where the point left the frame, or as near to there as there is room."""
    axes, marks, name = to.axes, to.marks, letter(index)
    if column < 0:
        text = marks.off_left + name
    elif column >= axes.columns:
        text = name + marks.off_right
    else:
        text = name + (marks.off_top if row < 0 else marks.off_bottom)
    at = max(0, min(row, axes.rows - 1)), max(0, min(column, axes.columns - 2))
    if 0 <= column < axes.columns:
        anchors = sorted((Anchor(at[0], one) for one in range(axes.columns)), key=lambda one: abs(one.column - at[1]))
    else:
        anchors = sorted((Anchor(one, at[1]) for one in range(axes.rows)), key=lambda one: abs(one.row - at[0]))
    free = (one for one in anchors if to.free(one.row, one.column - 1, len(text) + 2, margin=1))
    place = next(free, None)
    return to.place(BADGE, place.row, place.column, text, "bold", (index,)) if place else None


def _arrow(to: Plot, start: Placed, end: Placed) -> None:
    """Dots between two points, and a head beside the second; nothing where there is no room for a head."""
    rows, columns = end.row - start.row, end.column - start.column
    marks = to.marks
    beside = (
        (end.row, end.column - 1 if columns > 0 else end.column + end.width),
        marks.right if columns > 0 else marks.left,
    )
    over = (end.row - 1 if rows > 0 else end.row + 1, end.column), marks.down if rows > 0 else marks.up
    choices = [beside] * bool(columns) + [over] * bool(rows)
    if abs(columns) < 2 * abs(rows):  # A cell is twice as high as it is wide.
        choices.reverse()
    (row, column), head = next(((cell, head) for cell, head in choices if to.free(*cell, 1)), ((-1, -1), ""))
    if not head:
        return
    to.place(HEAD, row, column, head, _ARROW)
    rows, columns = row - start.row, column - start.column
    steps = max(abs(rows), abs(columns))
    for at in range(steps - 2, 0, -2):
        to.lines[start.row + round(rows * at / steps), start.column + round(columns * at / steps)] = (
            marks.trail,
            _ARROW,
        )


def _names(to: Plot, points: Sequence[Point], family: str) -> None:
    """Those of the family first: what others are called matters less."""
    marked = sorted(to.of(POINT, BADGE), key=lambda one: (one.style == DIM, one.points))
    for one in marked:
        told = letters(one.points) if len(one.points) > 1 else points[one.points[0]].variant
        text = fit(told, _LONGEST_NAME, to.glyphs)
        if text:
            to.label(NAME, (text,), _around(one), DIM if one.style == DIM else "", one.points)


def _around(one: Placed) -> list[Anchor]:
    first, last = one.column, one.column + one.width - 1
    return [
        Anchor(one.row, last + 2),
        Anchor(one.row, first - 2, 1),
        Anchor(one.row - 1, first, 0.5),
        Anchor(one.row + 1, first, 0.5),
        Anchor(one.row - 1, last + 1),
        Anchor(one.row + 1, last + 1),
        Anchor(one.row - 1, first - 1, 1),
        Anchor(one.row + 1, first - 1, 1),
        Anchor(one.row, last + 4),
    ]
