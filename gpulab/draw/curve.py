"""A filled curve in braille: two values a cell, four levels a row, coloured by their height."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.draw.area import Area

_GRADIENT = ("blue", "cyan", "bright_cyan", "green", "bright_green")
_DOTS = (0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08)
"""The bits of a cell's left and right column, from the lowest dot up."""
_LEVELS = 4
"""Dots of a column of a cell."""


def draw_curve(area: Area, shares: Sequence[float | None], *, filled: bool = True) -> None:
    """Draw shares of the height of the area from its left edge on, `filled` or as a line; None
    leaves a gap, and 0 has the lowest dot.
    """
    for cell in range((len(shares) + 1) // 2):
        pair = shares[2 * cell : 2 * cell + 2]
        known = [share for share in pair if share is not None]
        if not known:
            continue
        place = int(max(0.0, *known) * len(_GRADIENT))
        style = _GRADIENT[min(len(_GRADIENT) - 1, place)]
        for row in range(area.height):
            below = _LEVELS * (area.height - 1 - row)
            dots = 0
            for column, share in zip(_DOTS, pair, strict=False):
                if share is not None:
                    height = _height(share, area.height) - below
                    lowest = 0 if filled else height - 1
                    dots |= sum(column[max(0, lowest) : max(0, height)])
            if dots:
                area.put(row, cell, chr(0x2800 + dots), style)


def _height(share: float, rows: int) -> int:
    """In dots; of several rows the highest stay free, so that two curves do not touch."""
    most = rows * _LEVELS - (rows > 1)
    return max(1, round(min(share, 1.0) * most))
