"""The table beside a roofline: every point with its figures, also those that the plot has no place for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from gpulab.analysis.roofline import Point
from gpulab.protocol.ceiling import MEASURED
from gpulab.views.roofline.canvas import Canvas, fit, wide
from gpulab.views.roofline.placing import BY_COUNT, DIM, Plot
from gpulab.views.roofline.plot import COUNTED, letter, letters
from gpulab.views.roofline.reasons import marked
from gpulab.views.roofline.roofs import aside, name, per_second
from gpulab.views.text import Glyphs, percent_of_roof, three_digits, times

_BAR = 9
_UNLIKE, _FAR_END = 2.0, 3.0
"""Ends of an interval get a figure each where they differ by this factor, and one is so many points away."""
_SHORTEST_NAME, _READABLE_NAME, _LONGEST_NAME = 4, 12, 32


@dataclass(frozen=True)
class Column:
    head: str
    texts: Sequence[str]
    right: bool = False
    gap: int = 2
    """Cells before it."""
    dispensable: int = 0
    """The higher, the sooner it goes where the width ends; 0 stays."""

    @property
    def width(self) -> int:
        return max(map(wide, (self.head, *self.texts)))


@dataclass(frozen=True)
class PointTable:
    """Columns that fit, and the style of each row."""

    columns: Sequence[Column]
    styles: Sequence[str]

    @property
    def width(self) -> int:
        return sum(column.width + column.gap for column in self.columns)

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


def point_table(points: Sequence[Point], family: str, glyphs: Glyphs, *, width: int) -> PointTable:
    """At most `width` cells wide: names are cut, then columns go; letters and shares of the roof always stay.

    Bars repeat a share, so they go before names are too short to be read.
    """
    bars = Column("", [_bar(point, glyphs) for point in points], dispensable=4)
    columns = [
        Column("rate", [per_second(point.rate, point.unit) for point in points], right=True, dispensable=1),
        Column("FLOP/byte", [_intensity(point) for point in points], right=True, dispensable=2),
        Column("of roof", _shares(points, glyphs)),
        Column("", ["" if point.source == MEASURED else "*" for point in points], gap=0),
        bars,
        Column("bound", [glyphs(marked(point)) for point in points], dispensable=3),
    ]
    columns = [column for column in columns if any(column.texts) or column.gap == 0]
    marks = [letter(index) for index in range(len(points))]

    def room() -> int:
        return width - 2 - sum(column.width + column.gap for column in columns)

    if bars in columns and room() < _READABLE_NAME:
        columns.remove(bars)
    while room() < _SHORTEST_NAME and any(column.dispensable for column in columns):
        columns.remove(max(columns, key=lambda column: column.dispensable))
    most = max(0, min(room(), _LONGEST_NAME))
    names = Column(fit("variant", most, glyphs), [fit(point.variant, most, glyphs) for point in points], gap=1)
    styles = ["" if point.family == family else DIM for point in points]
    return PointTable([Column("", marks, gap=0), names, *columns], styles)


def notes(points: Sequence[Point], family: str, plot: Plot | None, glyphs: Glyphs, *, width: int) -> list[str]:
    """What letters and marks alone do not say, in as few lines as it takes."""
    lines: list[str] = []
    for note in map(glyphs, _notes(points, family, plot)):
        if lines and len(lines[-1]) + 3 + len(note) <= width:
            lines[-1] += f" {glyphs('·')} {note}"
        else:
            lines += wrap(note, width, subsequent_indent="  ")
    return lines


def _intensity(point: Point) -> str:
    """In FLOP/byte; empty where no FLOPs or no bytes are declared."""
    if point.intensity is None:
        return ""
    return three_digits(point.intensity) if point.intensity >= 0.1 else f"{point.intensity:.2g}"


def _bar(point: Point, glyphs: Glyphs) -> str:
    """The share of the roof of a point that the plot has no place for."""
    if point.is_drawable:
        return ""
    cells = min(_BAR, max(0, round(point.fraction * _BAR)))
    full, empty = "#." if glyphs.ascii else "█░"
    return full * cells + empty * (_BAR - cells)


def _shares(points: Sequence[Point], glyphs: Glyphs) -> list[str]:
    """Percent of what is attainable, with its interval: the time's error and the roof's."""
    values = [f"{percent_of_roof(point.fraction)} %" for point in points]
    digits = max(map(len, values), default=0)
    shares = []
    for point, value in zip(points, values, strict=True):
        shares.append(glyphs(f"{value:>{digits}}{_ends(point)}"))
    return shares


def _ends(point: Point) -> str:
    """How far the ends of an interval are from its middle: one figure, or two where they are not alike."""
    if point.fraction_low is None or point.fraction_high is None:
        return ""
    below, above = 100 * (point.fraction - point.fraction_low), 100 * (point.fraction_high - point.fraction)
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
    notes = [f"{len(indices)} at one place: {letters(indices)}" for indices in (plot.together() if plot else ())]
    notes += [f"dim: {letters(indices)} ({dtype})" for dtype, indices in other_families.items()]
    if sources := dict.fromkeys(point.source for point in points if point.source != MEASURED):
        notes.append(f"* roof: {' / '.join(sources)}")
    ratios = [f"{letter(index)} {times(point.bytes_ratio)}" for index, point in enumerate(points) if point.bytes_ratio]
    if ratios:
        mark = f"{COUNTED} " if plot and plot.of_kinds(BY_COUNT) else ""
        notes.append(f"{mark}counted bytes over declared: {', '.join(ratios)}")
    if without_intensity := [index for index, point in enumerate(points) if not point.is_drawable]:
        notes.append(f"no FLOP/byte: {letters(without_intensity)}")
    roofs: dict[str, list[str]] = defaultdict(list)
    for ceiling in plot.unlabelled if plot else ():
        roofs[name(ceiling).removeprefix("device ")].append(aside(ceiling))
    return notes + [f"{roof}: {', '.join(asides)}" for roof, asides in roofs.items()]
