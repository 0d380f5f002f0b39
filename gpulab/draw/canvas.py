"""A grid of cells that becomes one Text: each cell holds one character and one style."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from unicodedata import normalize

from rich.cells import get_character_cell_size
from rich.text import Text

_EMPTY = (" ", "")


@lru_cache(maxsize=4096)
def cells(text: str) -> tuple[str, ...]:
    """The text cell by cell: a wide character is followed by an empty cell, and what has no width
    is left out.
    """
    if text.isascii() and text.isprintable():
        return tuple(text)
    row: list[str] = []
    for character in normalize("NFC", text.expandtabs(4)):
        wide = get_character_cell_size(character)
        row += [character, ""] if wide == 2 else [character] * wide
    return tuple(row)


def wide(text: str) -> int:
    """Cells that a text takes."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(get_character_cell_size, text))


def fit(text: str, most: int) -> str:
    """The text in at most so many cells, cut where it must be."""
    row = cells(text)
    if len(row) <= most:
        return "".join(row)
    start = list(row[: max(0, most - 1)])
    if start and row[len(start)] == "":
        start[-1] = " "
    return "".join(start).rstrip() + "…" if most > 0 else ""


def fit_middle(text: str, most: int) -> str:
    """The text in at most so many cells, with its end: names of kernels differ there."""
    if wide(text) <= most:
        return text
    end = most // 2 - 1
    return fit(text, most - end) + text[-end:]


def packed(parts: Iterable[str], gap: str, width: int) -> list[str]:
    """Rows of parts, as many beside each other as have room; none goes on in the next row."""
    rows: list[str] = []
    for part in parts:
        if rows and wide(f"{rows[-1]}{gap}{part}") <= width:
            rows[-1] += f"{gap}{part}"
        else:
            rows.append(part)
    return rows


class Canvas:
    """Rows of cells. What does not fit into it is not drawn."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self._rows = [[_EMPTY] * columns for _ in range(rows)]

    def put(self, row: int, column: int, text: str, style: str = "") -> None:
        if not 0 <= row < len(self._rows):
            return
        line = self._rows[row]
        for at, cell in enumerate(cells(text), column):
            if 0 <= at < self.columns:
                line[at] = (cell, style)

    def text(self) -> Text:
        """All rows, without the empty cells at their ends."""
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, line in enumerate(self._rows):
            end = self.columns
            while end and line[end - 1] == _EMPTY:
                end -= 1
            if number:
                text.append("\n")
            for style, run in groupby(line[:end], key=itemgetter(1)):
                text.append("".join([cell for cell, _ in run]), style)
        return text
