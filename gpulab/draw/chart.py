"""Points with letters on two logarithmic axes: how one figure of each variant goes with another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from gpulab.draw.axis import LogAxis, around
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import Canvas

_ROOM = 0.08
_LABELS = 9
_LETTERS = ascii_uppercase + ascii_lowercase
LETTER_STYLES = ("bold cyan", "bold green", "bold magenta", "bold yellow", "bold blue", "bold red")


@dataclass(frozen=True)
class Mark:
    """A letter at a place; where several share a cell the first is seen."""

    letter: str
    x: float
    y: float
    style: str


@dataclass(frozen=True)
class Scale:
    """What an axis shows, and how its ticks are written."""

    name: str
    label: Callable[[float], str]


def letter_of(place: int) -> str:
    """A to Z, a to z, and * for all that follow."""
    return _LETTERS[place] if place < len(_LETTERS) else "*"


def style_of(place: int) -> str:
    return LETTER_STYLES[place % len(LETTER_STYLES)]


def chart(marks: Sequence[Mark], x: Scale, y: Scale, *, width: int, height: int) -> Text:
    """`height` rows of points, the axis of x below them with its ticks, that of y on the left."""
    columns = max(20, width - _LABELS - 1)
    across = LogAxis(*around([mark.x for mark in marks], _ROOM), columns)
    up = LogAxis(*around([mark.y for mark in marks], _ROOM), height)
    canvas = Canvas(width, height + 3)
    for row in range(height):
        canvas.put(row, _LABELS, "│", "dim")
    for cell, text in _rows_of(up, y.label):
        canvas.put(height - 1 - cell, max(0, _LABELS - 1 - len(text)), text, "dim")
        canvas.put(height - 1 - cell, _LABELS, "┤", "dim")
    canvas.put(height, _LABELS, "└" + "─" * columns, "dim")
    for start, text in across.ticks(x.label):
        canvas.put(height + 1, _LABELS + 1 + start, text, "dim")
    canvas.put(height + 2, _LABELS + 1, f"{y.name} (up), {x.name} (right)", "dim")
    for mark in reversed(marks):
        row = height - 1 - up.inside(mark.y)
        canvas.put(row, _LABELS + 1 + across.inside(mark.x), mark.letter, mark.style)
    return canvas.text()


def _rows_of(axis: LogAxis, label: Callable[[float], str]) -> list[tuple[int, str]]:
    """(row from below, label) of the ends and what lies between them, where they are rows apart."""
    rows: dict[int, str] = {}
    for share in (0.0, 0.5, 1.0):
        cell = round(share * (axis.cells - 1))
        value = axis.low * (axis.high / axis.low) ** (cell / max(1, axis.cells - 1))
        rows.setdefault(cell, label(value))
    return list(rows.items())
