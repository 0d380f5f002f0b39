"""What views return: blocks that Rich draws on a terminal as they are. The renderers for HTML and
Markdown in `gpulab/show` read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, TypeAlias

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Group as Group
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text as Text

from gpulab.draw.figure import Figure

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

FAILED_HERE = "  ◀ "
"""Between a line of code and the message of what failed there."""
_NUMBER = 4


class Table(rich_table.Table):
    """Rows below the heads of their columns, `gap` cells apart, without lines."""

    def __init__(self, gap: int = 2, *, show_header: bool = True, title: str = "") -> None:
        super().__init__(
            box=None,
            padding=(0, gap, 0, 0),
            pad_edge=False,
            collapse_padding=not show_header,
            show_header=show_header,
            header_style="bold",
            title=title or None,
        )

    @property
    def cells(self) -> Iterator[tuple[RenderableType, ...]]:
        """Yield the cells of each row."""
        return zip(*(column.cells for column in self.columns), strict=True)


def columns_table(*, gap: int = 2) -> Table:
    """A table for columns with heads, so many cells apart."""
    return Table(gap)


def rows_table() -> Table:
    """A table for names and what is said of each."""
    return Table(show_header=False)


def styled_words(text: Text) -> Iterator[tuple[str, str]]:
    """Yield the words of a text, and the style that they have besides its own."""
    ends = {0, len(text)}
    for span in text.spans:
        ends |= {span.start, span.end}
    places = pairwise(sorted(ends))
    styles = {
        (start, end): " ".join(
            str(each.style) for each in text.spans if each.start <= start < each.end
        )
        for start, end in places
    }
    for style, alike in groupby(styles, key=styles.__getitem__):
        yield "".join(text.plain[start:end] for start, end in alike), style


@dataclass(frozen=True)
class Fitted:
    """Blocks that are made for a width, in cells."""

    of_width: Callable[[int], Iterable[Block]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.of_width(options.max_width)


@dataclass(frozen=True)
class Inside:
    """A block that begins `left` cells further right, and is at most `width` cells wide."""

    block: Block
    left: int = 0
    width: int | None = None

    def __rich__(self) -> RenderableType:
        return Constrain(Padding(self.block, (0, 0, 0, self.left)), self.width)


@dataclass(frozen=True)
class Heading:
    """The heading of what follows, and what is said beside it in its style."""

    words: str
    aside: str = ""
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a line with the words at its left, and what is beside them at its right."""
        left = f"── {self.words} "
        right = f" {self.aside} ──" if self.aside else "──"
        text = Text(left, "bold", no_wrap=True, overflow="ellipsis")
        room = min(options.max_width, 160) - cell_len(left) - cell_len(right)
        text.append("─" * max(2, room), "not bold dim")
        yield text.append(right, f"not bold {self.style or 'dim'}")


@dataclass(frozen=True)
class Code:
    """Numbered lines of code: (number, "+" or "-" where it differs or a blank, the line). By the
    number of a line what `failed` there.
    """

    lines: Sequence[tuple[int, str, Text]]
    failed: Mapping[int, str] = field(default_factory=dict)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines: folded where the width ends, whole where they go to a file."""
        lines = [
            (_margin(number, sign), self._whole(number, line)) for number, sign, line in self.lines
        ]
        if options.no_wrap:
            whole = Text("\n", no_wrap=True, overflow="ignore")
            yield whole.join(margin.append(line) for margin, line in lines)
            return
        table = rich_table.Table.grid()
        table.add_column(width=_NUMBER + 3)
        table.add_column(overflow="fold")
        for margin, line in lines:
            table.add_row(margin, line)
        yield table

    def _whole(self, number: int, line: Text) -> Text:
        """Return a line with the message of what failed there at its end."""
        message = self.failed.get(number)
        if message is None:
            return line
        return Text().append(line).append(f"{FAILED_HERE}{message}", "bold red")


def _margin(number: int, sign: str) -> Text:
    margin = Text().append(f"{number:>{_NUMBER}} ", "dim")
    return margin.append(f"{sign} ", "bold" if sign.strip() else "")


@dataclass(frozen=True)
class Markdown:
    """A text in Markdown, in which tags are text."""

    source: str

    def __rich__(self) -> RenderableType:
        from gpulab.draw.rich_markdown import RichMarkdown  # which most pages do without

        return RichMarkdown(self.source)


Block: TypeAlias = (
    "str | Text | Table | Figure | Group | Heading | Code | Fitted | Inside | Markdown"
)

Leaf: TypeAlias = "Text | Table | Figure | Heading | Code | Markdown"


def leaves(block: RenderableType | None, width: int) -> Iterator[Leaf]:
    """Yield what a block is made of, at a width: for renderers that do not lay out."""
    match block:
        case str():
            yield Text(block)
        case Group():
            for inner in block.renderables:
                yield from leaves(inner, width)
        case Fitted():
            for inner in block.of_width(width):
                yield from leaves(inner, width)
        case Inside():
            yield from leaves(block.block, width)
        case Text() | Table() | Figure() | Heading() | Code() | Markdown():
            yield block


def joined_leaves(block: RenderableType | None, width: int) -> Iterator[Leaf]:
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
