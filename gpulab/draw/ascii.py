"""ASCII for terminals that show nothing else. Views draw with all of Unicode: what leaves a face is
translated, a cell for a cell, so that no layout changes.
"""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size


def to_ascii(text: str) -> str:
    """The text in ASCII, a cell for a cell: ± takes the blank before it as well, styled or not, and
    an arrow the one after it.
    """
    if text.isascii():
        return text
    text = text.replace(" · ", " - ").replace(" → ", " ->")
    return _PLUS_MINUS.sub(r"\1+-", text).translate(_ASCII)


class _Ascii(dict[int, str]):
    """By code point: what looks most like it, else as many question marks as it has cells."""

    def __missing__(self, code: int) -> str:
        self[code] = chr(code) if code < 0x80 else "?" * get_character_cell_size(chr(code))
        return self[code]


_PLUS_MINUS = re.compile(r" ((?:\x1b\[[\d;]*m)*)±")
_LOOKS_LIKE = {
    "─━═▄▀╸╺╴╶╌•": "-",
    "│┃║▌▐▎▏▕▍▊▋▉": "|",
    "┌┐└┘├┤┬┴┼┿╭╮╯╰±": "+",
    "▁": "_",
    "▂·": ".",
    "▃": ",",
    "▄": "-",
    "▅": "=",
    "▆": "+",
    "▇": "*",
    "█": "#",
    "▓": "%",
    "▒∙": ":",
    "░": ".",
    "▔": '"',
    "●◦": "o",
    "◐": "c",
    "○": "-",
    "µ": "u",
    "…": "~",
    "▸▶→⏎": ">",
    "◂◀←": "<",
    "▲↑": "^",
    "▼↓": "v",
}
_ROWS_OF_DOTS = (0x09, 0x12, 0x24, 0xC0)
"""Braille: the bits of the dots in each row."""
_FILLED = dict.fromkeys((0xE4, 0xF4, 0xE6), "=")
_FILLED |= dict.fromkeys((0xF6, 0xFC, 0xE7, 0xFE, 0xF7), "*") | {0xFF: "#"}
"""Cells of a filled curve, whose two columns begin at the lowest dot."""


def _line_of_dots(dots: int) -> str:
    """A filled curve; or a dot, a steep line, or a flat one: low, in the middle, or high."""
    if dots in _FILLED:
        return _FILLED[dots]
    rows = [row for row, bits in enumerate(_ROWS_OF_DOTS) if dots & bits]
    if dots.bit_count() < 2:
        return "." if dots else " "
    if rows[-1] - rows[0] > 1:
        return "/"
    return '"--_'[round(sum(rows) / len(rows))]


_ASCII = _Ascii((ord(mark), like) for marks, like in _LOOKS_LIKE.items() for mark in marks)
_ASCII.update((0x2800 + dots, _line_of_dots(dots)) for dots in range(0x100))
