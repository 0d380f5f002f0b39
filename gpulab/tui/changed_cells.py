"""Only what differs from what the terminal shows already: what Textual writes, less the cells that
stay as they are.

Textual sends all cells of a widget that is refreshed, and several whole screens at the start: 18 kB
at 80x24, which a line of 1,200 bytes a second takes 15 s for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from rich.cells import get_character_cell_size

_TOKENS = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|\n|([^\x1b\n]+)")
_FRAME = re.compile(r"(?:\x1b\[\d+;\d+H|\x1b\[[\d;]*m|\n|[^\x1b\x00-\x09\x0b-\x1f]+)+")
_CLEARED = "\x1b[?1049h"
_CLEAR = "\x1b[2J"
_BRIDGE = 8
"""So many unchanged cells in a row cost as much as moving the cursor over them."""
_ERASED = 3
"""More blank cells than this to the end of a row are erased, not sent."""
_ON_BLANKS = {"4", "7", "9", "21", "53"}
"""Attributes that are seen where there is no character: lines and reverse."""

Cell = tuple[str, str]
"""A character with those that combine with it, and its style as codes; an empty one is the right
half of a wide one.
"""
_BLANK: Cell = (" ", "")


class ChangedCells:
    """The known cells of a terminal, and what it must be sent to show others."""

    def __init__(self, *, erases_with_background: bool = False) -> None:
        """`erases_with_background`: what the terminal erases has the background that is set."""
        self._erases_with_background = erases_with_background
        self._rows: dict[int, dict[int, Cell]] = {}
        self._blank = False
        """Cells of which nothing is known are blank."""
        self._cursor = ""
        self._width: int | None = None
        self._height: int | None = None

    def resize(self, width: int, height: int) -> None:
        """The terminal has so many columns and rows now, and shows whatever it shows.

        A frame for the size before may follow. A terminal puts what is outside of it into its last
        column and row.
        """
        self.forget()
        self._width, self._height = width, height

    def forget(self) -> None:
        """Whatever the terminal shows now: somebody else wrote to it."""
        self._rows, self._blank, self._cursor = {}, False, ""

    def of(self, data: str) -> str:
        """Return what of the data has to be sent. What is no frame is sent as it is."""
        if not data.startswith("\x1b[") or not _FRAME.fullmatch(data):
            return self._raw(data)
        out: list[str] = []
        style = cursor = ""
        for row, cells, at in self._frame(data):
            style, cursor = self._row(row, self._inside(row, cells), style, out), at
        if style:
            out.append("\x1b[0m")
        if out or cursor != self._cursor:
            self._cursor = cursor
            out.append(cursor)
        return "".join(out)

    def _raw(self, data: str) -> str:
        if _CLEARED in data:
            self.forget()
            self._blank = True
            return data.replace(_CLEARED, _CLEARED + _CLEAR)
        if "\x1b[?1049l" in data:
            self.forget()
        return data

    def _frame(self, data: str) -> Iterator[tuple[int, dict[int, Cell], str]]:
        """Row by row what a frame puts where, by column, and where the cursor is left."""
        cells: dict[int, Cell] = {}
        row = column = 1
        style = cursor = ""
        for token in _TOKENS.finditer(data):
            y, x, codes, text = token.groups()
            if y is not None:
                if int(y) != row and cells:
                    yield row, cells, cursor
                    cells = {}
                row, column, cursor = int(y), int(x), token[0]
            elif codes is not None:
                style = _codes(codes)
            elif text is not None:
                column = _put(cells, column, text, style)
        yield row, cells, cursor

    def _inside(self, row: int, cells: dict[int, Cell]) -> dict[int, Cell]:
        """The cells of a row that the terminal has."""
        width = self._width
        if self._height is not None and row > self._height:
            return {}
        if width is None or max(cells, default=0) <= width:
            return cells
        end = width - (cells.get(width + 1, _BLANK)[0] == "")  # a wide one is whole or is not there
        return {column: cell for column, cell in cells.items() if column <= end}

    def _row(self, row: int, cells: dict[int, Cell], style: str, out: list[str]) -> str:
        """Append what changes the row; returns the style in which the terminal is left."""
        shown = self._rows.setdefault(row, {})
        unknown = _BLANK if self._blank else None
        at: int | None = None
        wanted = shown | cells
        blank = wanted.get(self._width or 0, _BLANK)
        if blank[0] != " " or not self._can_erase(blank[1]):
            blank = _BLANK
        end = max((column for column, cell in wanted.items() if cell != blank), default=0)
        after = [column for column in cells if column > end and shown.get(column, unknown) != blank]
        if len(after) <= _ERASED:
            end, after = max(cells, default=0), []
        for column in sorted(column for column in cells if column <= end):
            cell = cells[column]
            if shown.get(column, unknown) == cell:
                continue
            if not cell[0]:  # the right half comes with the left one
                shown[column] = cell
                if at != column:
                    column -= 1
                    cell = cells.get(column, _BLANK)
                else:
                    continue
            if (
                at is not None
                and 0 < column - at <= _BRIDGE
                and all(shown.get(between, unknown) is not None for between in range(at, column))
            ):
                for between in range(at, column):
                    style = _send(shown.get(between, unknown) or _BLANK, style, out)
            elif at != column:
                out.append(f"\x1b[{row};{column}H")
            style = _send(cell, style, out)
            shown[column] = cell
            at = column + max(1, sum(map(get_character_cell_size, cell[0])))
        if after:
            out += [
                _change(style, blank[1]),
                f"\x1b[{row};{end + 1}H" if at != end + 1 else "",
                "\x1b[K",
            ]
            shown.update(dict.fromkeys(after, blank))
            style = blank[1]
        return style

    def _can_erase(self, style: str) -> bool:
        """Return whether an erased cell is a blank in this style."""
        return not style or (self._erases_with_background and _parts(style).background == style)


def _send(cell: Cell, style: str, out: list[str]) -> str:
    character, wanted = cell
    if character == " " and wanted == _on_blank(style):
        wanted = style  # nobody sees the difference
    out += (_change(style, wanted), character)
    return wanted


def _put(cells: dict[int, Cell], column: int, text: str, style: str) -> int:
    """Put a text into a row; returns the column after it."""
    blank = (" ", _on_blank(style))
    for character in text:
        if character == " ":
            cells[column] = blank
            column += 1
            continue
        width = 1 if character.isascii() else get_character_cell_size(character)
        if width == 0:
            before = column - 1 if cells.get(column - 1, _BLANK)[0] else column - 2
            if before in cells:
                cells[before] = (cells[before][0] + character, cells[before][1])
            continue
        cells[column] = (character, style)
        if width == 2:
            cells[column + 1] = ("", style)
        column += width
    return column


class _Parts(NamedTuple):
    """The codes of a style."""

    attributes: str
    foreground: str
    background: str


@lru_cache(maxsize=1024)
def _parts(style: str) -> _Parts:
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    codes = iter(style.split(";") if style else ())
    for code in codes:
        one = [code]
        if code in ("38", "48"):  # then 5 and a number, or 2 and three
            kind = next(codes, "")
            one += [kind, *islice(codes, 3 if kind == "2" else 1)]
        place = 0
        if code[0] in "39" and len(code) == 2:
            place = 1
        elif (code[0] == "4" and len(code) == 2) or len(code) == 3:
            place = 2
        found[place].extend(one)
    return _Parts(*map(";".join, found))


@lru_cache(maxsize=1024)
def _change(style: str, wanted: str) -> str:
    """The shortest that takes the terminal from one style to another."""
    if style == wanted:
        return ""
    anew = f"\x1b[0;{wanted}m" if wanted else "\x1b[0m"
    before, after = _parts(style), _parts(wanted)
    if before.attributes != after.attributes:
        return anew
    codes = []
    if before.foreground != after.foreground:
        codes.append(after.foreground or "39")
    if before.background != after.background:
        codes.append(after.background or "49")
    return min(f"\x1b[{';'.join(codes)}m", anew, key=len)


@lru_cache(maxsize=1024)
def _codes(codes: str) -> str:
    """Without those that say what is so without them: the default colours, and a reset."""
    kept = [code for code in codes.split(";") if code]
    if "38" in kept or "48" in kept:  # their numbers may look like other codes
        return codes.removeprefix("0;")
    return ";".join(code for code in kept if code not in ("0", "39", "49"))


@lru_cache(maxsize=1024)
def _on_blank(style: str) -> str:
    """Return what of a style is seen where there is no character."""
    parts = _parts(style)
    return style if _ON_BLANKS & set(parts.attributes.split(";")) else parts.background
