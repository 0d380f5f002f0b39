"""The columns of a table that a width has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from rich.cells import cell_len


@dataclass(frozen=True)
class Column:
    """A head, and the text of each row below it."""

    head: str
    texts: Sequence[str]
    right: bool = False
    gap: int = 2
    """Cells before it."""
    dispensable: int = 0
    """The higher, the sooner it goes where the width ends; 0 stays."""
    most: int | None = None
    """Cells that it takes at most: what is longer is folded."""

    @cached_property  # every line asks for it
    def width(self) -> int:
        widest = max(map(cell_len, (self.head, *self.texts)))
        return widest if self.most is None else min(widest, self.most)


def width_of(columns: Sequence[Column]) -> int:
    """Cells of all columns, with the gaps before them."""
    return sum(column.width + column.gap for column in columns)


Item = TypeVar("Item")


_MOST_COLUMNS = 5


def first_and_last(items: Sequence[Item]) -> list[Item]:
    """As many as a table has columns for: the first, and of the others the last."""
    if len(items) <= _MOST_COLUMNS:
        return list(items)
    return [items[0], *items[len(items) - _MOST_COLUMNS + 1 :]]


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns without those that must go for the others to fit; texts are not cut."""
    shown = list(columns)
    while width_of(shown) > width and any(column.dispensable for column in shown):
        shown.remove(max(shown, key=lambda column: column.dispensable))
    return shown
