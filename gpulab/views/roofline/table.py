"""The table beside a roofline: every point with its figures, also those that the plot has no place for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from gpulab.model.ceilings import MEASURED
from gpulab.model.roofline import Point
from gpulab.views.roofline.canvas import Canvas, fit, wide
from gpulab.views.roofline.placing import DIM, Plot
from gpulab.views.roofline.plot import letter, letters, on_plot
from gpulab.views.roofline.roofs import aside, name, per_second
from gpulab.views.text import Glyphs, three

_BAR = 9
_SHORTEST_NAME, _LONGEST_NAME = 4, 32


@dataclass(frozen=True)
class Column:
    head: str
    texts: Sequence[str]
    right: bool = False
    gap: int = 2
    """Cells before it."""
    leaves: int = 0
    """The higher, the sooner it goes where the width ends; 0 stays."""

    @property
    def width(self) -> int:
        return max(map(wide, (self.head, *self.texts)))


@dataclass(frozen=True)
class Table:
    """Columns that fit, and the style of each row."""

    columns: Sequence[Column]
    styles: Sequence[str]

    @property
    def width(self) -> int:
        return sum(one.width + one.gap for one in self.columns)

    @property
    def height(self) -> int:
        return 1 + len(self.styles) if self.styles else 0

    def draw(self, to: Canvas, row: int, column: int) -> None:
        for one in self.columns:
            column += one.gap
            for number, text in enumerate((one.head, *one.texts)):
                start = column + (one.width - wide(text) if one.right else 0)
                to.put(row + number, start, text, self.styles[number - 1] if number else "bold")
            column += one.width


def table(points: Sequence[Point], family: str, glyphs: Glyphs, *, width: int) -> Table:
    """At most `width` cells wide: names are cut, then columns go; letters and shares of the roof always stay."""
    columns = [
        Column("rate", [per_second(one.rate, one.unit) for one in points], right=True, leaves=1),
        Column("FLOP/byte", [_intensity(one, glyphs) for one in points], right=True, leaves=2),
        Column("of roof", _shares(points, glyphs)),
        Column("", ["" if one.source == MEASURED else "*" for one in points], gap=0),
        Column("bound", [glyphs(one.bound) for one in points], leaves=3),
    ]
    named = [letter(index) for index in range(len(points))]

    def room() -> int:
        return width - 2 - sum(one.width + one.gap for one in columns)

    while room() < _SHORTEST_NAME and any(one.leaves for one in columns):
        columns.remove(max(columns, key=lambda one: one.leaves))
    most = max(0, min(room(), _LONGEST_NAME))
    names = Column(fit("variant", most, glyphs), [fit(one.variant, most, glyphs) for one in points], gap=1)
    styles = ["" if one.family == family else DIM for one in points]
    return Table([Column("", named, gap=0), names, *columns], styles)


def notes(points: Sequence[Point], family: str, drawn: Plot | None, glyphs: Glyphs, *, width: int) -> list[str]:
    """What letters and marks alone do not say, in as few lines as it takes."""
    found: list[str] = []
    for note in map(glyphs, _notes(points, family, drawn)):
        if found and len(found[-1]) + 3 + len(note) <= width:
            found[-1] += f" {glyphs('·')} {note}"
        else:
            found += wrap(note, width, subsequent_indent="  ")
    return found


def _intensity(of: Point, glyphs: Glyphs) -> str:
    """In FLOP/byte; where there is none, its share of the roof as a bar."""
    if of.intensity is not None:
        return three(of.intensity) if of.intensity >= 0.1 else f"{of.intensity:.2g}"
    filled = min(_BAR, max(0, round(of.fraction * _BAR)))
    full, empty = "#." if glyphs.ascii else "█░"
    return full * filled + empty * (_BAR - filled)


def _shares(points: Sequence[Point], glyphs: Glyphs) -> list[str]:
    """Percent of what is attainable, with half of its interval's width."""
    values = [f"{_percent(one.fraction)} %" for one in points]
    digits = max(map(len, values), default=0)
    found = []
    for one, value in zip(points, values, strict=True):
        known = one.fraction_low is not None and one.fraction_high is not None
        half = 50 * ((one.fraction_high or 0.0) - (one.fraction_low or 0.0))
        found.append(glyphs(f"{value:>{digits}}" + (f" ±{half:.{int(half < 9.95)}f}" if known else "")))
    return found


def _percent(share: float) -> str:
    value = 100 * share
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.05 or not value else "<0.1"


def _notes(points: Sequence[Point], family: str, drawn: Plot | None) -> list[str]:
    works: dict[str, list[int]] = defaultdict(list)
    dimmed: dict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(points):
        if one.intensity is not None or one.unit == "B/s":  # the others declare no bytes
            works[one.work].append(index)
        if one.family != family:
            dimmed[one.family].append(index)
    found = [f"{len(some)} at one place: {letters(some)}" for some in (drawn.together() if drawn else ())]
    found += [f"dim: {letters(some)} ({other})" for other, some in dimmed.items()]
    if sources := dict.fromkeys(one.source for one in points if one.source != MEASURED):
        found.append(f"* roof: {' / '.join(sources)}")
    most, *fewer = sorted(works, key=lambda work: -len(works[work])) or [""]
    if most:
        found.append("; ".join([f"bytes: {most}", *(f"{work}: {letters(works[work])}" for work in fewer)]))
    if bars := [index for index, one in enumerate(points) if not on_plot(one)]:
        found.append(f"no FLOP/byte: {letters(bars)}")
    roofs: dict[str, list[str]] = defaultdict(list)
    for roof in drawn.untold if drawn else ():
        roofs[name(roof).removeprefix("device ")].append(aside(roof))
    return found + [f"{roof}: {', '.join(some)}" for roof, some in roofs.items()]
