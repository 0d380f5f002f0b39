"""The two tables of the lab, both without lines: columns below their heads, and rows without."""

from __future__ import annotations

from rich.table import Table


def columns_table(*, gap: int = 2) -> Table:
    """For columns with heads, so many cells apart."""
    return Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")


def rows_table() -> Table:
    """For names and what is said of each."""
    return Table.grid(padding=(0, 2, 0, 0))
