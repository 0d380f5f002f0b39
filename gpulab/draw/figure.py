"""A figure as data: axes, lines, points and bars. One renderer draws it on a terminal
(`gpulab/draw/plot.py`), one as SVG (`gpulab/show/svg.py`), and matplotlib as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from string import ascii_lowercase, ascii_uppercase

_LETTERS = ascii_uppercase + ascii_lowercase
STYLES = ("cyan", "green", "magenta", "yellow", "blue", "red")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


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


def decade(value: float) -> str:
    """A power of ten, such as 0.01, 10, 1k, 100G."""
    power = floor(log10(value) + 0.5)
    if power < 0:
        return f"{10.0**power:g}"
    if power >= len(_PREFIXES) * 3:
        return f"1e{power}"
    return f"{10 ** (power % 3)}{_PREFIXES[power // 3]}"


def decades(low: float, high: float) -> list[float]:
    """The powers of ten between two values."""
    first, last = floor(log10(low) + 0.999), floor(log10(high) + 0.001)
    return [10.0**power for power in range(first, last + 1)]


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
