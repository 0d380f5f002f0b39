"""A figure as data: axes, lines, points and bars. One renderer draws it on a terminal
(`gpulab/draw/plot.py`), one as SVG (`gpulab/show/svg.py`), and matplotlib as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from gpulab.draw.axis import decade as decade
from gpulab.draw.axis import decades as decades

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_LETTERS = ascii_uppercase + ascii_lowercase
STYLES = ("cyan", "green", "magenta", "yellow", "blue", "red")


def letter_of(place: int) -> str:
    """A to Z, a to z, and * for all that follow."""
    return _LETTERS[place] if place < len(_LETTERS) else "*"


def style_of(place: int) -> str:
    """The colour of a variant, by its place."""
    return STYLES[place % len(STYLES)]


@dataclass(frozen=True)
class Scale:
    """An axis: its name, its ends, how a value is written, and whether it is logarithmic.

    `ticks`: values that are to have a label; without them the renderer chooses.
    """

    name: str
    low: float
    high: float
    label: Callable[[float], str]
    logarithmic: bool = True
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Line:
    """Points (x, y) that a line connects. `dashed`: it was not measured. `below`: its label stands
    below it, as another line is above.
    """

    points: Sequence[tuple[float, float]]
    label: str = ""
    style: str = ""
    dashed: bool = False
    below: bool = False


@dataclass(frozen=True)
class Mark:
    """A point with its letter, its name, and the ends of its interval where it has one."""

    letter: str
    name: str
    x: float
    y: float
    style: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Bar:
    """A bar from zero to a value of x, with the ends of its interval, and words behind it."""

    name: str
    value: float
    low: float
    high: float
    words: str
    style: str = ""


@dataclass(frozen=True)
class Figure:
    """Lines and marks over two axes, or bars over one (then `y` is None)."""

    title: str
    x: Scale
    y: Scale | None = None
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    bars: Sequence[Bar] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from gpulab.draw.plot import plot  # which a listing does without

        yield plot(self, min(options.max_width, 160), 24)


def scale_around(
    name: str,
    values: Sequence[float],
    label: Callable[[float], str],
    *,
    logarithmic: bool = True,
    room: float = 0.08,
) -> Scale:
    """An axis that holds positive values with some room on both sides; a linear one begins at 0."""
    low, high = min(values), max(values)
    if not logarithmic:
        return Scale(name, 0.0, high * (1 + room), label, logarithmic=False)
    factor = max((high / low) ** room, 1.01)
    return Scale(name, low / factor, high * factor, label)
