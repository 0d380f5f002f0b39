"""What views return: texts, tables and groups of them as data. Renderers for the terminal, HTML and
Markdown stand in `gpulab/show`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, Self, TypeAlias

from rich.cells import cell_len

from gpulab.draw.figure import Figure

Overflow = Literal["fold", "ellipsis", "crop", "ignore"]
Justify = Literal["left", "right"]


class Text:
    """Words in several styles, such as "bold cyan"; `style` is that of all of them.

    `no_wrap`: each of its lines stays one, and `overflow` says how one ends that is too long.
    """

    def __init__(
        self,
        words: str = "",
        style: str = "",
        *,
        no_wrap: bool = False,
        overflow: Overflow | None = None,
    ) -> None:
        self.style = style
        self.no_wrap = no_wrap
        self.overflow = overflow
        self.parts: list[tuple[str, str]] = []
        """Words, and the style that they have besides."""
        self.append(words)

    @classmethod
    def assemble(cls, *parts: str | Text | tuple[str, str]) -> Self:
        text = cls()
        for part in parts:
            words, style = part if isinstance(part, tuple) else (part, "")
            text.append(words, style)
        return text

    def append(self, words: str | Text, style: str = "") -> Self:
        """Add words, or a text in its own styles."""
        if isinstance(words, Text):
            self.parts += [(part, f"{words.style} {own}".strip()) for part, own in words.parts]
        elif words:
            self.parts.append((words, style))
        return self

    def join(self, texts: Iterable[Text]) -> Text:
        """One text of several, with this one between them."""
        joined = Text(no_wrap=self.no_wrap, overflow=self.overflow)
        for number, text in enumerate(texts):
            if number:
                joined.append(self)
            joined.append(text)
        return joined

    def lines(self) -> list[Text]:
        """A text for each line."""
        lines = [self._line()]
        for words, style in self.parts:
            first, *others = words.split("\n")
            lines[-1].append(first, style)
            lines += [self._line().append(other, style) for other in others]
        return lines

    def _line(self) -> Text:
        return Text(style=self.style, no_wrap=self.no_wrap, overflow=self.overflow)

    def rstrip(self) -> None:
        """Remove white space from its end."""
        while self.parts:
            words, style = self.parts.pop()
            if words := words.rstrip():
                self.parts.append((words, style))
                return

    @property
    def plain(self) -> str:
        return "".join([words for words, _ in self.parts])

    @property
    def cell_len(self) -> int:
        return cell_len(self.plain)

    def __str__(self) -> str:
        return self.plain

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __repr__(self) -> str:
        return f"Text({self.plain!r}, {self.style!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Text):
            return NotImplemented
        return self.style == other.style and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Head:
    """A column of a table: what stands above it, and how wide it may be."""

    words: str | Text = ""
    justify: Justify = "left"
    no_wrap: bool = False
    overflow: Overflow = "ellipsis"
    style: str = ""
    min_width: int | None = None
    width: int | None = None
    max_width: int | None = None
    vertical: Literal["top", "bottom"] = "top"


@dataclass
class Table:
    """Rows below the heads of their columns, `gap` cells apart, without lines."""

    gap: int = 2
    show_header: bool = True
    title: str = ""
    columns: list[Head] = field(default_factory=list)
    rows: list[tuple[Block, ...]] = field(default_factory=list)

    def add_column(
        self,
        words: str | Text = "",
        *,
        justify: Justify = "left",
        no_wrap: bool = False,
        overflow: Overflow = "ellipsis",
        style: str = "",
        min_width: int | None = None,
        width: int | None = None,
        max_width: int | None = None,
        vertical: Literal["top", "bottom"] = "top",
    ) -> None:
        head = Head(words, justify, no_wrap, overflow, style, min_width, width, max_width, vertical)
        self.columns.append(head)

    def add_row(self, *cells: Block, style: str = "") -> None:
        """Add a row; columns without heads are added where there are too few."""
        while len(self.columns) < len(cells):
            self.columns.append(Head())
        if style:
            cells = tuple(Text(cell, style) if isinstance(cell, str) else cell for cell in cells)
        self.rows.append(cells + ("",) * (len(self.columns) - len(cells)))


def columns_table(*, gap: int = 2) -> Table:
    """A table for columns with heads, so many cells apart."""
    return Table(gap)


def rows_table() -> Table:
    """A table for names and what is said of each."""
    return Table(show_header=False)


class Group:
    """Blocks below each other."""

    def __init__(self, *blocks: Block) -> None:
        self.blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)


@dataclass(frozen=True)
class Fitted:
    """Blocks that are made for a width, in cells."""

    of_width: Callable[[int], Iterable[Block]]


@dataclass(frozen=True)
class Inside:
    """A block that begins `left` cells further right, and is at most `width` cells wide."""

    block: Block
    left: int = 0
    width: int | None = None


@dataclass(frozen=True)
class Heading:
    """The heading of what follows, and what is said beside it in its style."""

    words: str
    aside: str = ""
    style: str = ""


@dataclass(frozen=True)
class Code:
    """Numbered lines of code: (number, "+" or "-" where it differs or a blank, the line). By the
    number of a line what `failed` there.
    """

    lines: Sequence[tuple[int, str, Text]]
    failed: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Markdown:
    """A text in Markdown, in which tags are text."""

    source: str


Block: TypeAlias = (
    "str | Text | Table | Figure | Group | Heading | Code | Fitted | Inside | Markdown"
)

Leaf: TypeAlias = "Text | Table | Figure | Heading | Code | Markdown"


def leaves(block: Block | None, width: int) -> Iterator[Leaf]:
    """Yield what a block is made of, at a width: for renderers that do not lay out."""
    match block:
        case str():
            yield Text(block)
        case Group():
            for inner in block:
                yield from leaves(inner, width)
        case Fitted():
            for inner in block.of_width(width):
                yield from leaves(inner, width)
        case Inside():
            yield from leaves(block.block, width)
        case Text() | Table() | Figure() | Heading() | Code() | Markdown():
            yield block


def joined_leaves(block: Block | None, width: int) -> Iterator[Leaf]:
    """The same, with texts that follow each other as one: those that may be folded, and those that
    may not.
    """
    kinds = groupby(leaves(block, width), key=lambda leaf: isinstance(leaf, Text) and leaf.no_wrap)
    for may_not_be_folded, group in kinds:
        if not may_not_be_folded:
            yield from group
            continue
        lines = [leaf for leaf in group if isinstance(leaf, Text)]
        yield Text("\n", no_wrap=True).join(lines)
