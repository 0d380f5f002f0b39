"""Blocks on a terminal: what Rich draws them with, and their rows as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

from rich import console as rich_console
from rich import table as rich_table
from rich import text as rich_text
from rich.cells import cell_len
from rich.constrain import Constrain
from rich.padding import Padding

from gpulab.draw.blocks import Block, Code, Fitted, Group, Heading, Inside, Markdown, Table, Text
from gpulab.draw.figure import Figure

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


def drawn(block: Block | RenderableType) -> RenderableType:
    """The block as Rich draws it."""
    match block:
        case str():
            return block
        case Text():
            return of_text(block)
        case Table():
            return _rich_table(block)
        case Group():
            return rich_console.Group(*map(drawn, block))
        case Fitted():
            return _OfWidth(block)
        case Figure():
            return _OfWidth(Fitted(partial(_plotted, block)))
        case Heading():
            return _OfWidth(Fitted(partial(_rule, block)))
        case Code():
            return _OfCode(block)
        case Inside():
            return Constrain(Padding(drawn(block.block), (0, 0, 0, block.left)), block.width)
        case Markdown():
            from gpulab.show.rich_markdown import RichMarkdown  # which most pages do without

            return RichMarkdown(block.source)
        case _:
            return block


def of_text(text: Text) -> rich_text.Text:
    """The text with its styles."""
    made = rich_text.Text(style=text.style, no_wrap=text.no_wrap or None, overflow=text.overflow)
    for words, style in text.parts:
        made.append(words, style or None)
    return made


def _rich_table(table: Table) -> rich_table.Table:
    made = rich_table.Table(
        box=None,
        padding=(0, table.gap, 0, 0),
        pad_edge=False,
        collapse_padding=not table.show_header,
        show_header=table.show_header,
        header_style="bold",
        title=table.title or None,
    )
    for head in table.columns:
        made.add_column(
            drawn(head.words),
            justify=head.justify,
            no_wrap=head.no_wrap,
            overflow=head.overflow,
            style=head.style,
            min_width=head.min_width,
            width=head.width,
            max_width=head.max_width,
            vertical=head.vertical,
        )
    for row in table.rows:
        made.add_row(*map(drawn, row))
    return made


_WIDEST_RULE = _WIDEST_PLOT = 160
_ROWS_OF_PLOT = 24
_UNBOUNDED = 10_000


def _plotted(figure: Figure, width: int) -> Iterator[Text]:
    from gpulab.draw.plot import plot  # which a listing does without

    rows = _ROWS_OF_PLOT if figure.y else 1 + len(figure.bars)
    yield plot(figure, min(width, _WIDEST_PLOT), rows)


def _rule(heading: Heading, width: int) -> Iterator[Text]:
    """A line with the words at its left, and what is beside them at its right."""
    left = f"── {heading.words} "
    right = f" {heading.aside} ──" if heading.aside else "──"
    text = Text(left, "bold", no_wrap=True, overflow="ellipsis")
    room = min(width, _WIDEST_RULE) - cell_len(left) - cell_len(right)
    text.append("─" * max(2, room), "not bold dim")
    yield text.append(right, f"not bold {heading.style or 'dim'}")


FAILED_HERE = "  ◀ "
"""Between a line of code and the message of what failed there."""
_NUMBER = 4


@dataclass(frozen=True)
class _OfCode:
    """Numbered lines: folded where the width ends, whole where they go to a file."""

    block: Code

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.no_wrap:
            lines = [self._margin(number, sign).append(line) for number, sign, line in self._lines]
            yield of_text(Text("\n", no_wrap=True, overflow="ignore").join(lines))
            return
        table = rich_table.Table.grid()
        table.add_column(width=_NUMBER + 3)
        table.add_column(overflow="fold")
        for number, sign, line in self._lines:
            table.add_row(of_text(self._margin(number, sign)), of_text(line))
        yield table

    @property
    def _lines(self) -> Iterator[tuple[int, str, Text]]:
        """Yield each line, with the message of what failed there at its end."""
        for number, sign, line in self.block.lines:
            message = self.block.failed.get(number)
            if message is not None:
                line = Text().append(line).append(f"{FAILED_HERE}{message}", "bold red")
            yield number, sign, line

    def _margin(self, number: int, sign: str) -> Text:
        margin = Text().append(f"{number:>{_NUMBER}} ", "dim")
        return margin.append(f"{sign} ", "bold" if sign.strip() else "")


@dataclass(frozen=True)
class _OfWidth:
    block: Fitted

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for block in self.block.of_width(options.max_width):
            yield drawn(block)


def plain_text(block: Block, width: int, *, soft_wrap: bool = False) -> str:
    """Its rows at that width without colours, and without blanks at their ends."""
    console, file = _console(width)
    console.print(drawn(block), soft_wrap=soft_wrap)
    rows = file.getvalue().splitlines()
    return "\n".join(row.rstrip() for row in rows)


def height(block: Block, width: int) -> int:
    """Rows that it takes at that width."""
    console, _ = _console(width)
    return len(console.render_lines(drawn(block), pad=False))


def fits(block: Block, width: int) -> bool:
    """Return whether no table in it breaks words, or loses some, at that width."""
    if isinstance(block, Group):
        return all(fits(each, width) for each in block.blocks)
    if isinstance(block, Fitted):
        return all(fits(each, width) for each in block.of_width(width))
    return not isinstance(block, Table) or _least_width(block) <= width


def _least_width(table: Table) -> int:
    """Return the cells of its longest words, and of columns that do not wrap; Rich's measure takes
    these for words too.
    """
    cells = table.gap * (len(table.columns) - 1)
    for head, *column in zip(table.columns, *table.rows, strict=True):
        if head.width is not None:
            cells += head.width
            continue
        texts = [plain_text(cell, _UNBOUNDED) for cell in column]
        if table.show_header:
            texts.append(str(head.words))
        pieces = [line for text in texts for line in text.splitlines()]
        if not head.no_wrap:
            pieces = [word for line in pieces for word in line.split()]
        least = max([head.min_width or 0, *map(cell_len, pieces)])
        cells += min(least, head.max_width or least)
    return cells


def _console(width: int) -> tuple[Console, StringIO]:
    """One that prints into a text, and finds neither markup nor numbers to colour."""
    file = StringIO()
    console = rich_console.Console(
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
