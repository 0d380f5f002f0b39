"""The roofline of a device with the variants below it: a plot, and the table of its points beside or below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.text import Text

from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.roofline import Point, Roofline
from gpulab.protocol.ceiling import MEMORY
from gpulab.protocol.ceiling import family as family_of
from gpulab.views.roofline.axes import FamilyRoofs, axes_for, family_roofs
from gpulab.views.roofline.canvas import Canvas
from gpulab.views.roofline.placing import DIM, Plot
from gpulab.views.roofline.plot import plot_of
from gpulab.views.roofline.roofs import aside, per_second
from gpulab.views.roofline.table import PointTable, notes, point_table
from gpulab.views.text import Glyphs, three_digits

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


def families(roofline: Roofline) -> list[str]:
    """Those of the points, in their order."""
    return list(dict.fromkeys(point.family for point in roofline.points))


def first_family(roofline: Roofline) -> str:
    """What is drawn where nobody chose: the first that has both a point to draw and roofs above it."""
    candidates = [*families(roofline), family_of(None)]
    drawable = {point.family for point in roofline.points if point.is_drawable}
    roofed = (family for family in candidates if family in drawable and family_roofs(roofline.ceilings, family).flats)
    return next(roofed, candidates[0])


def roofline_view(roofline: Roofline, glyphs: Glyphs, *, width: int, height: int, family: str | None = None) -> Text:
    """One family of dtypes below its roofs; higher than `height` where that leaves no room for a plot."""
    layout = layout_of(roofline, glyphs, width=width, height=height, family=family)
    canvas = Canvas(layout.width, layout.height, glyphs)
    if layout.plot:
        _draw(canvas, layout.plot, layout.title)
    else:
        for row, line in enumerate(layout.why_no_plot):
            canvas.put(row, 0, line)
    row, column = layout.table_at
    if roofline.points:
        layout.table.draw(canvas, row, column)
    for number, note in enumerate(layout.notes, row + layout.table.height + layout.gap):
        canvas.put(number, column, note, DIM)
    return canvas.text()


@dataclass(frozen=True)
class Layout:
    """Where everything of the view is."""

    width: int
    height: int
    title: str
    why_no_plot: list[str]
    plot: Plot | None
    table: PointTable
    table_at: tuple[int, int]
    notes: list[str]
    gap: int
    """Lines between the table and its notes."""


def layout_of(roofline: Roofline, glyphs: Glyphs, *, width: int, height: int, family: str | None = None) -> Layout:
    width, points = max(width, _NARROWEST), roofline.points
    family = family or first_family(roofline)
    roofs = family_roofs(roofline.ceilings, family)
    complete = bool(roofs.memory and roofs.flats)
    # Without a point to draw there is nothing to see below the roofs.
    plotted = complete and (not points or any(point.is_drawable for point in points))
    beside = width >= BESIDE and bool(points) and plotted
    room = width - _GAP - max(_LEAST, int(_SHARE * width)) if beside else width
    table = point_table(points, family, glyphs, width=room)
    room = table.width if beside else width
    lines = notes(points, family, None, glyphs, width=room)
    reason = _levels(points, roofs) if complete else _missing(roofline, roofs, family)
    why_no_plot = [] if plotted else wrap(glyphs(reason), width)
    plot: Plot | None = None
    while plotted:
        # What the notes say of points at one place, and of roofs, depends on the rows, and takes rows itself.
        below = 0 if beside else table.height + len(lines)
        rows = max(height - below - _AROUND, _FEWEST_ROWS)
        if plot and rows >= plot.axes.rows:
            break
        columns = (width - table.width - _GAP if beside else width) - _TICK
        plot = plot_of(roofline, roofs, axes_for(roofs, columns, rows), family, glyphs)
        lines = notes(points, family, plot, glyphs, width=room)
    above = plot.axes.rows + _AROUND if plot else len(why_no_plot) + bool(points)
    lower = table.height + beside + len(lines)
    return Layout(
        width=width,
        height=max(above, lower) if beside else above + lower,
        title=glyphs(f"{family}, ridge at {three_digits(roofs.ridge)} FLOP/byte"),
        why_no_plot=why_no_plot,
        plot=plot,
        table=table,
        table_at=(0, width - table.width) if beside else (above, 0),
        notes=lines,
        gap=int(beside),
    )


def _levels(points: Sequence[Point], roofs: FamilyRoofs) -> str:
    """The roofs of work that only moves bytes, or of which no bytes are known; what other sources say of them."""
    others = {roof.ceiling.name: roof.others for roof in (roofs.memory, roofs.cache, *roofs.flats) if roof}
    levels: dict[str, str] = {}
    for point in points:
        asides = ", ".join(map(aside, others.get(point.roof, ())))
        brackets = f" ({asides})" if asides else ""
        levels[point.roof] = f"{point.roof} {per_second(point.attainable, point.unit)}{brackets}"
    return f"roofs: {', '.join(levels.values())}"


def _missing(roofline: Roofline, roofs: FamilyRoofs, family: str) -> str:
    if not roofline.ceilings:
        return "No roofline: no ceiling is known; gpulab --calibrate measures them."
    missing = [] if roofs.memory else ["device memory"]
    missing += [] if roofs.flats else [f"{family} arithmetic"]
    unsteady = RoofSet(roofline.ceilings).unsteady()
    disturbed = {ceiling.roof if ceiling.roof == MEMORY else family_of(ceiling.kind) for ceiling in unsteady}
    reason = "none was measured here"
    if disturbed & ({family} if roofs.memory else {MEMORY}):
        reason = "the machine was too unsteady: run it again when it is quiet"
    return f"No roofline: no ceiling is known of {' or '.join(missing)}: {reason}."


def _draw(canvas: Canvas, plot: Plot, title: str) -> None:
    """The axes with their decades, then lines, then all that has a place."""
    across, upward = plot.axes.ticks()
    rows, columns = plot.axes.rows, plot.axes.columns
    bar, tick, corner, floor, foot = "|++-+" if plot.glyphs.ascii else "│┤└─┬"
    canvas.put(0, 0, "FLOP/s", "bold")
    canvas.put(0, len("FLOP/s") + 2, title, "bold")
    for row in range(rows):
        decade = upward.get(row, "")
        canvas.put(1 + row, 0, f"{decade:>{_TICK - 1}}{tick if decade else bar}", DIM)
    line = "".join(foot if column in across else floor for column in range(columns))
    canvas.put(1 + rows, _TICK - 1, corner + line, DIM)
    unit = "FLOP/byte"
    end = _TICK + columns - len(unit)
    canvas.put(2 + rows, end, unit, "bold")
    after = 0
    for column, decade in across.items():
        start = max(_TICK + column - len(decade) // 2, _TICK - 1)
        if after <= start and start + len(decade) < end:
            canvas.put(2 + rows, start, decade, DIM)
            after = start + len(decade) + 1
    for (row, column), (glyph, style) in plot.lines.items():
        canvas.put(1 + row, _TICK + column, glyph, style)
    for placed in plot.placed:
        canvas.put(1 + placed.row, _TICK + placed.column, placed.text, placed.style)
