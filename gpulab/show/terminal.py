"""Rows of blocks as plain text, and how many there are."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console

from gpulab.draw.blocks import Block, Fitted, Group, Table

if TYPE_CHECKING:
    from rich.console import RenderableType


def plain_text(block: RenderableType, width: int, *, soft_wrap: bool = False) -> str:
    """Its rows at that width without colours, and without blanks at their ends."""
    console, file = _console(width)
    console.print(block, soft_wrap=soft_wrap)
    rows = file.getvalue().splitlines()
    return "\n".join(row.rstrip() for row in rows)


def height(block: Block, width: int) -> int:
    """Rows that it takes at that width."""
    console, _ = _console(width)
    return len(console.render_lines(block, pad=False))


def fits(block: RenderableType, width: int) -> bool:
    """Return whether no table in it breaks words, or loses some, at that width."""
    if isinstance(block, Group):
        return all(fits(each, width) for each in block.renderables)
    if isinstance(block, Fitted):
        return all(fits(each, width) for each in block.of_width(width))
    return not isinstance(block, Table) or _least_width(block) <= width


def _least_width(table: Table) -> int:
    """Return the cells of its longest words, and of columns that do not wrap; Rich's measure takes
    these for words too.
    """
    cells = table.padding[1] * (len(table.columns) - 1)
    for column in table.columns:
        if column.width is not None:
            cells += column.width
            continue
        texts = [plain_text(cell, 10_000) for cell in column.cells]
        if table.show_header:
            texts.append(str(column.header))
        pieces = [line for text in texts for line in text.splitlines()]
        if not column.no_wrap:
            pieces = [word for line in pieces for word in line.split()]
        least = max([column.min_width or 0, *map(cell_len, pieces)])
        cells += min(least, column.max_width or least)
    return cells


def _console(width: int) -> tuple[Console, StringIO]:
    """One that prints into a text, and finds neither markup nor numbers to colour."""
    file = StringIO()
    console = Console(
        width=width,
        file=file,
        force_terminal=False,
        force_jupyter=False,
        color_system=None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    return console, file
