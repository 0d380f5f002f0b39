"""The roofline of a device with the variants below it: a plot, and the table of its points beside or below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.text import Text

from gpulab.model.ceilings import MEMORY, Roofs
from gpulab.model.ceilings import family as family_of
from gpulab.model.roofline import Point, Roofline
from gpulab.views.roofline.axes import House, axes, house
from gpulab.views.roofline.canvas import Canvas
from gpulab.views.roofline.placing import DIM, Plot
from gpulab.views.roofline.plot import on_plot, plot
from gpulab.views.roofline.roofs import aside, per_second
from gpulab.views.roofline.table import Table, notes, table
from gpulab.views.text import Glyphs, three

BESIDE = 110
"""Columns from which the table stands beside the plot."""
_NARROWEST, _FEWEST_ROWS = 40, 10
_LEAST, _SHARE = 48, 0.42
"""Columns that a plot keeps, and its share of the width, when names in the table beside it are long."""
_GAP = 3
_TICK = 5
"""Columns left of the plot: the longest decade, and the axis."""
_AROUND = 3
"""Lines of a plot that are not between its axes: its title, the axis, the ticks."""


def families(of: Roofline) -> list[str]:
    """Those of the points, in their order."""
    return list(dict.fromkeys(point.family for point in of.points))


def first_family(of: Roofline) -> str:
    """What is drawn where nobody chose: the first that has both a point to draw and roofs above it."""
    every = [*families(of), family_of(None)]
    drawable = {point.family for point in of.points if on_plot(point)}
    return next((one for one in every if one in drawable and house(of.ceilings, one).flats), every[0])


def roofline(of: Roofline, glyphs: Glyphs, *, width: int, height: int, family: str | None = None) -> Text:
    """One family of types below its roofs; higher than `height` where that leaves no room for a plot."""
    found = layout(of, glyphs, width=width, height=height, family=family)
    canvas = Canvas(found.width, found.height, glyphs)
    if found.plot:
        _draw(canvas, found.plot, found.title)
    else:
        for row, line in enumerate(found.why):
            canvas.put(row, 0, line)
    row, column = found.table_at
    if of.points:
        found.table.draw(canvas, row, column)
    for number, note in enumerate(found.notes, row + found.table.height + found.gap):
        canvas.put(number, column, note, DIM)
    return canvas.text()


@dataclass(frozen=True)
class Layout:
    """Where everything of the view is. Without a plot, `why` says what it lacks."""

    width: int
    height: int
    title: str
    why: list[str]
    plot: Plot | None
    table: Table
    table_at: tuple[int, int]
    notes: list[str]
    gap: int
    """Lines between the table and its notes."""


def layout(of: Roofline, glyphs: Glyphs, *, width: int, height: int, family: str | None = None) -> Layout:
    width = max(width, _NARROWEST)
    family = family or first_family(of)
    under = house(of.ceilings, family)
    known = bool(under.memory and under.flats)
    roofed = known and (not of.points or any(map(on_plot, of.points)))  # else there is nothing to see below the roofs
    beside = width >= BESIDE and bool(of.points) and roofed
    room = width - _GAP - max(_LEAST, int(_SHARE * width)) if beside else width
    figures = table(of.points, family, glyphs, width=room)
    room = figures.width if beside else width
    told = notes(of.points, family, None, glyphs, width=room)
    why = [] if roofed else wrap(glyphs(_levels(of.points, under) if known else _why(of, under, family)), width)
    drawn: Plot | None = None
    while roofed:
        # What the notes say of points at one place, and of roofs, depends on the rows, and takes rows itself.
        below = 0 if beside else figures.height + len(told)
        rows = max(height - below - _AROUND, _FEWEST_ROWS)
        if drawn and rows >= drawn.axes.rows:
            break
        columns = (width - figures.width - _GAP if beside else width) - _TICK
        drawn = plot(of, under, axes(under, columns, rows), family, glyphs)
        told = notes(of.points, family, drawn, glyphs, width=room)
    above = drawn.axes.rows + _AROUND if drawn else len(why) + bool(of.points)
    lower = figures.height + beside + len(told)
    return Layout(
        width=width,
        height=max(above, lower) if beside else above + lower,
        title=glyphs(f"{family}, ridge at {three(under.ridge)} FLOP/byte"),
        why=why,
        plot=drawn,
        table=figures,
        table_at=(0, width - figures.width) if beside else (above, 0),
        notes=told,
        gap=int(beside),
    )


def _levels(points: Sequence[Point], under: House) -> str:
    """The roofs of work that only moves bytes, or of which no bytes are known; what other sources say of them."""
    others = {one.ceiling.name: one.others for one in (under.memory, under.cache, *under.flats) if one}
    levels: dict[str, str] = {}
    for one in points:
        said = ", ".join(map(aside, others.get(one.roof, ())))
        levels[one.roof] = f"{one.roof} {per_second(one.attainable, one.unit)}" + f" ({said})" * bool(said)
    return f"roofs: {', '.join(levels.values())}"


def _why(of: Roofline, under: House, family: str) -> str:
    if not of.ceilings:
        return "No roofline: no ceiling is known: gpulab --calibrate measures them."
    missing = [] if under.memory else ["device memory"]
    missing += [] if under.flats else [f"{family} arithmetic"]
    unsteady = {one.roof if one.roof == MEMORY else family_of(one.kind) for one in Roofs(of.ceilings).unsteady()}
    disturbed = unsteady & ({MEMORY} if not under.memory else {family})
    mend = "the machine was too unsteady: run it again when it is quiet" if disturbed else "none was measured here"
    return f"No roofline: no ceiling is known of {' or '.join(missing)}: {mend}."


def _draw(to: Canvas, of: Plot, title: str) -> None:
    """The axes with their decades, then lines, then all that has a place."""
    across, upward = of.axes.ticks()
    rows, columns = of.axes.rows, of.axes.columns
    bar, tick, corner, floor, foot = "|++-+" if of.glyphs.ascii else "│┤└─┬"
    to.put(0, 0, "FLOP/s", "bold")
    to.put(0, len("FLOP/s") + 2, title, "bold")
    for row in range(rows):
        told = upward.get(row, "")
        to.put(1 + row, 0, f"{told:>{_TICK - 1}}{tick if told else bar}", DIM)
    to.put(1 + rows, _TICK - 1, corner + "".join(foot if at in across else floor for at in range(columns)), DIM)
    unit = "FLOP/byte"
    free = _TICK + columns - len(unit)
    to.put(2 + rows, free, unit, "bold")
    after = 0
    for column, told in across.items():
        start = max(_TICK + column - len(told) // 2, _TICK - 1)
        if after <= start and start + len(told) < free:
            to.put(2 + rows, start, told, DIM)
            after = start + len(told) + 1
    for (row, column), (glyph, style) in of.lines.items():
        to.put(1 + row, _TICK + column, glyph, style)
    for one in of.placed:
        to.put(1 + one.row, _TICK + one.column, one.text, one.style)
