"""The roofline of a device with the variants below it: a plot, and the table of its points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from gpulab.core.payloads import MEASURED, MEMORY
from gpulab.core.payloads import family as family_of
from gpulab.core.statuses import BoundKind
from gpulab.core.units import operation_of_roof, percent_of_roof, three_digits, times
from gpulab.draw.bars import gauge
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import Canvas, fit, wide
from gpulab.draw.chart import letter_of
from gpulab.draw.table import Column, fitting, width_of
from gpulab.features.roofline.axes import BY_COUNT, DIM, FamilyRoofs, Plot, axes_for, family_roofs
from gpulab.features.roofline.bound import Cause, OperationPoint, Point, Roofline
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.plot import COUNTED, aside, name, per_second, plot_of
from gpulab.report.report import VariantReport
from gpulab.report.sentences import sentence

_WORDS = {
    BoundKind.CACHE: "cache-resident",
    BoundKind.PAGE_FAULTS: "page-fault-bound",
    BoundKind.WAITING: "waiting",
    BoundKind.PREEMPTED: "contention",
    BoundKind.UNEXPLAINED: "unexplained",
    BoundKind.UNKNOWN: "unknown",
}


def marked(cause: Cause | Point) -> str:
    """The bound, with a mark where it is unsure."""
    word = _WORDS[cause.bound] if cause.bound == BoundKind.PREEMPTED else cause.bound
    return f"{word}{'?' * bool(cause.or_else)}"


def reasons(points: Sequence[Point], *, letters: bool = True) -> Text:
    """A line a point: its letter beside a plot, its bound, and the evidence for it."""
    text = Text()
    for index, point in enumerate(points):
        _add(text, f"{f'{letter_of(index)} ' * letters}{point.variant}", point)
    return text


def causes(variants: Iterable[VariantReport]) -> Text:
    """The same of variants that no roofline has a point for."""
    text = Text()
    for variant in variants:
        if variant.cause and not variant.roofline:
            _add(text, variant.name, variant.cause)
    return text


def limits(variants: Sequence[VariantReport]) -> Text:
    """What limits each, with points first, and what to do: no letters beside, no line after it."""
    points = [variant.roofline for variant in variants if variant.roofline]
    text = reasons(points, letters=False).append(causes(variants))
    text.rstrip()
    return text


def _add(text: Text, name: str, cause: Cause | Point) -> None:
    words = [_WORDS.get(kind, f"{kind}-bound") for kind in (cause.bound, *cause.or_else)]
    unsure = ""
    if cause.or_else:
        unsure = f" (unsure: {' or '.join(words[1:])}, within the intervals of times and roofs)"
    text.append(f"{name}: ")
    text.append(f"{words[0]}{'?' * bool(cause.or_else)}", "bold")
    text.append(f": {sentence(cause.reason)}{unsure}" + "\n")


_BAR = 9
_UNLIKE, _FAR_END = 2.0, 3.0
"""Ends of an interval get a figure each where they differ by this factor, and one is so many points
away.
"""
_SHORTEST_NAME, _READABLE_NAME, _LONGEST_NAME = 4, 12, 32


@dataclass(frozen=True)
class PointTable:
    """Columns that fit, and the style of each row."""

    columns: Sequence[Column]
    styles: Sequence[str]

    @property
    def width(self) -> int:
        return width_of(self.columns)

    @property
    def height(self) -> int:
        return 1 + len(self.styles) if self.styles else 0

    def draw(self, canvas: Canvas, row: int, offset: int) -> None:
        for column in self.columns:
            offset += column.gap
            for number, text in enumerate((column.head, *column.texts)):
                start = offset + (column.width - wide(text) if column.right else 0)
                canvas.put(row + number, start, text, self.styles[number - 1] if number else "bold")
            offset += column.width


def point_table(
    points: Sequence[Point], family: str, *, width: int, noun: str = "variant"
) -> PointTable:
    """At most `width` cells wide: names are cut, then columns go; letters and shares of the roof
    always stay.

    Bars repeat a share, so they go before names are too short to be read.
    """
    bars = Column(
        "",
        ["" if point.is_drawable else gauge(point.fraction, _BAR) for point in points],
        dispensable=4,
    )
    columns = [
        Column(
            "rate",
            [per_second(point.rate, point.unit) for point in points],
            right=True,
            dispensable=1,
        ),
        Column("FLOP/byte", [_intensity(point) for point in points], right=True, dispensable=2),
        Column("of roof", _shares(points)),
        Column("", ["" if point.source == MEASURED else "*" for point in points], gap=0),
        bars,
        Column("bound", [marked(point) for point in points], dispensable=3),
    ]
    columns = [column for column in columns if any(column.texts) or column.gap == 0]
    marks = [letter_of(index) for index in range(len(points))]
    room = width - 2
    if bars in columns and room - width_of(columns) < _READABLE_NAME:
        columns.remove(bars)
    columns = fitting(columns, room - _SHORTEST_NAME)
    most = max(0, min(room - width_of(columns), _LONGEST_NAME))
    names = Column(fit(noun, most), [fit(point.variant, most) for point in points], gap=1)
    styles = ["" if point.family == family else DIM for point in points]
    return PointTable([Column("", marks, gap=0), names, *columns], styles)


def notes(points: Sequence[Point], family: str, plot: Plot | None, *, width: int) -> list[str]:
    """What letters and marks alone do not say, in as few lines as it takes."""
    lines: list[str] = []
    for note in _notes(points, family, plot):
        if lines and len(lines[-1]) + 3 + len(note) <= width:
            lines[-1] += f" {'·'} {note}"
        else:
            lines += wrap(note, width, subsequent_indent="  ")
    return lines


def _intensity(point: Point) -> str:
    """In FLOP/byte; empty where no FLOPs or no bytes are declared."""
    if point.intensity is None:
        return ""
    return three_digits(point.intensity) if point.intensity >= 0.1 else f"{point.intensity:.2g}"


def _shares(points: Sequence[Point]) -> list[str]:
    """Percent of what is attainable, with its interval: the time's error and the roof's."""
    values = [
        operation_of_roof(point.fraction)
        if isinstance(point, OperationPoint)
        else f"{percent_of_roof(point.fraction)} %"
        for point in points
    ]
    digits = max(map(len, values), default=0)
    shares = []
    for point, value in zip(points, values, strict=True):
        shares.append(f"{value:>{digits}}{_ends(point)}")
    return shares


def _ends(point: Point) -> str:
    """How far the ends of an interval are from its middle: one figure, or two where they are not
    alike.
    """
    if point.fraction_low is None or point.fraction_high is None:
        return ""
    below, above = (
        100 * (point.fraction - point.fraction_low),
        100 * (point.fraction_high - point.fraction),
    )
    if max(below, above) > max(_UNLIKE * min(below, above), _FAR_END):
        return f" +{_points(above)} -{_points(below)}"
    return f" ±{_points((below + above) / 2)}"


def _points(width: float) -> str:
    """Points of per cent."""
    width = max(0.0, width)
    return f"{width:.{int(width < 9.95)}f}"


def _notes(points: Sequence[Point], family: str, plot: Plot | None) -> list[str]:
    other_families: dict[str, list[int]] = defaultdict(list)
    for index, point in enumerate(points):
        if point.family != family:
            other_families[point.family].append(index)
    notes = [
        f"{len(indices)} at one place: {','.join(map(letter_of, indices))}"
        for indices in (plot.together() if plot else ())
    ]
    notes += [
        f"dim, in {dtype}: {','.join(map(letter_of, indices))}"
        for dtype, indices in other_families.items()
    ]
    if sources := dict.fromkeys(point.source for point in points if point.source != MEASURED):
        notes.append(f"* roof: {' / '.join(sources)}")
    ratios = [
        f"{letter_of(index)} {times(point.bytes_ratio)}"
        for index, point in enumerate(points)
        if point.bytes_ratio
    ]
    if ratios:
        mark = f"{COUNTED} " if plot and plot.of_kinds(BY_COUNT) else ""
        notes.append(f"{mark}counted bytes over declared: {', '.join(ratios)}")
    if without_intensity := [index for index, point in enumerate(points) if not point.is_drawable]:
        notes.append(f"no FLOP/byte: {','.join(map(letter_of, without_intensity))}")
    roofs: dict[str, list[str]] = defaultdict(list)
    for ceiling in plot.unlabelled if plot else ():
        roofs[name(ceiling).removeprefix("device ")].append(aside(ceiling))
    return notes + [f"{roof}: {', '.join(asides)}" for roof, asides in roofs.items()]


BESIDE = 110
"""Columns from which the table stands beside the plot."""
_NARROWEST, _FEWEST_ROWS = 40, 10
_LEAST, _SHARE = 48, 0.42
"""Columns that a plot keeps, and its share of the width, when names in the table beside it are
long.
"""
_GAP = 3
_TICK = 5
"""Columns left of the plot: the longest decade, and the axis."""
_AROUND = 3
"""Lines of a plot that are not between its axes: its title, the axis, the ticks."""


def families(roofline: Roofline) -> list[str]:
    """Those of the points, in their order."""
    return list(dict.fromkeys(point.family for point in roofline.points))


def first_family(roofline: Roofline) -> str:
    """What is drawn where nobody chose: the first that has both a point to draw and roofs above
    it.
    """
    candidates = [*families(roofline), family_of(None)]
    drawable = {point.family for point in roofline.points if point.is_drawable}
    roofed = (
        family
        for family in candidates
        if family in drawable and family_roofs(roofline.ceilings, family).flats
    )
    return next(roofed, candidates[0])


def roofline_view(
    roofline: Roofline, *, width: int, height: int, family: str | None = None
) -> Text:
    """One family of dtypes below its roofs; higher than `height` where that leaves no room for a
    plot.
    """
    layout = layout_of(roofline, width=width, height=height, family=family)
    canvas = Canvas(layout.width, layout.height)
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


def layout_of(roofline: Roofline, *, width: int, height: int, family: str | None = None) -> Layout:
    width, points = max(width, _NARROWEST), roofline.points
    family = family or first_family(roofline)
    roofs = family_roofs(roofline.ceilings, family)
    complete = bool(roofs.memory and roofs.flats)
    # Without a point to draw there is nothing to see below the roofs.
    plotted = complete and (not points or any(point.is_drawable for point in points))
    beside = width >= BESIDE and bool(points) and plotted
    room = width - _GAP - max(_LEAST, int(_SHARE * width)) if beside else width
    table = point_table(points, family, width=room, noun=roofline.noun)
    room = table.width if beside else width
    lines = notes(points, family, None, width=room)
    reason = _levels(points, roofs) if complete else _missing(roofline, roofs, family)
    why_no_plot = [] if plotted else wrap(reason, width)
    plot: Plot | None = None
    while plotted:
        # What the notes say of points at one place, and of roofs, depends on the rows, and takes
        # rows itself.
        below = 0 if beside else table.height + len(lines)
        rows = max(height - below - _AROUND, _FEWEST_ROWS)
        if plot and rows >= plot.axes.rows:
            break
        columns = (width - table.width - _GAP if beside else width) - _TICK
        plot = plot_of(roofline, roofs, axes_for(roofs, columns, rows), family)
        lines = notes(points, family, plot, width=room)
    above = plot.axes.rows + _AROUND if plot else len(why_no_plot) + bool(points)
    lower = table.height + beside + len(lines)
    return Layout(
        width=width,
        height=max(above, lower) if beside else above + lower,
        title=f"{family}, ridge at {three_digits(roofs.ridge)} FLOP/byte",
        why_no_plot=why_no_plot,
        plot=plot,
        table=table,
        table_at=(0, width - table.width) if beside else (above, 0),
        notes=lines,
        gap=int(beside),
    )


def _levels(points: Sequence[Point], roofs: FamilyRoofs) -> str:
    """The roofs of work that only moves bytes, or of which no bytes are known; what other sources
    say of them.
    """
    others = {
        roof.ceiling.name: roof.others for roof in (roofs.memory, roofs.cache, *roofs.flats) if roof
    }
    levels: dict[str, str] = {}
    for point in points:
        asides = ", ".join(map(aside, others.get(point.roof, ())))
        brackets = f" ({asides})" if asides else ""
        levels[point.roof] = f"{point.roof} {per_second(point.attainable, point.unit)}{brackets}"
    return f"roofs: {', '.join(levels.values())}"


def _missing(roofline: Roofline, roofs: FamilyRoofs, family: str) -> str:
    if not roofline.ceilings:
        return "No roofline: no ceiling is known; gpulab --calibrate measures them."
    missing = []
    if not roofs.memory:
        missing.append("device memory")
    if not roofs.flats:
        missing.append(f"{family} arithmetic")
    unsteady = RoofSet(roofline.ceilings).unsteady()
    disturbed = {
        ceiling.roof if ceiling.roof == MEMORY else family_of(ceiling.kind) for ceiling in unsteady
    }
    reason = "none was measured here"
    if disturbed & ({family} if roofs.memory else {MEMORY}):
        reason = "the machine was too unsteady: run it again when it is quiet"
    return f"No roofline: no ceiling is known of {' or '.join(missing)}: {reason}."


def _draw(canvas: Canvas, plot: Plot, title: str) -> None:
    """The axes with their decades, then lines, then all that has a place."""
    across, upward = plot.axes.ticks()
    rows, columns = plot.axes.rows, plot.axes.columns
    canvas.put(0, 0, "FLOP/s", "bold")
    canvas.put(0, len("FLOP/s") + 2, title, "bold")
    for row in range(rows):
        decade = upward.get(row, "")
        canvas.put(1 + row, 0, f"{decade:>{_TICK - 1}}{'┤' if decade else '│'}", DIM)
    line = "".join("┬" if column in across else "─" for column in range(columns))
    canvas.put(1 + rows, _TICK - 1, "└" + line, DIM)
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
