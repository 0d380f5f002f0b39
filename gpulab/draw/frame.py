"""The frame of a panel: its title at the left of the upper edge, a figure at the right."""

from __future__ import annotations

from gpulab.draw.area import Area
from gpulab.draw.canvas import fit, wide

_AROUND_TITLE, _AROUND_WORDS = 6, 8
"""Cells of the upper edge beside a title, and beside a title and a figure."""
_SIDE = 2
"""An edge, and a cell of air."""


def edge_rows(*, closed: bool) -> int:
    return 2 if closed else 1


def inner_width(width: int, *, closed: bool) -> int:
    return max(0, width - 2 * _SIDE) if closed else width


def draw_frame(area: Area, title: str, figure: str, *, chosen: bool, closed: bool) -> Area:
    """Draw around the area, or above it where it is not `closed`; return what is inside."""
    style = "bold blue" if chosen else "bright_black"
    last = area.width - 1
    area.put(0, 0, "─" * area.width, style)
    if closed:
        area.put(0, 0, "╭", style)
        area.put(0, last, "╮", style)
        for row in range(1, area.height - 1):
            area.put(row, 0, "│", style)
            area.put(row, last, "│", style)
        area.put(area.height - 1, 0, f"╰{'─' * (area.width - 2)}╯", style)
    mark = "▸" if chosen else " "
    title = fit(title, area.width - _AROUND_TITLE)
    area.put(0, 2, f"{mark}{title} ", "bold blue" if chosen else "bold")
    if figure and wide(title) + wide(figure) + _AROUND_WORDS <= area.width:
        area.put(0, area.width - wide(figure) - 4, f" {figure} ")
    if closed:
        return area.part(1, _SIDE, area.width - 2 * _SIDE, area.height - 2)
    return area.part(1, 0, area.width, area.height - 1)
