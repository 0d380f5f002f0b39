"""Markdown on a terminal: headings at the left, tables without boxes, drawings that stay whole."""

from __future__ import annotations

from typing import Self

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

_STYLES = Theme(
    {
        "markdown.h1": "bold",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.code": "bold",
        "markdown.table.header": "bold",
    }
)
_CODE_THEME = "ansi_dark"
_DRAWING = "text"
"""The language of a block whose lines are cut where the width ends: folded, it shows nothing."""


class _Heading(markdown.Heading):
    LEVEL_ALIGN = dict.fromkeys(markdown.Heading.LEVEL_ALIGN, "left")


class _Code(markdown.CodeBlock):
    @classmethod
    def create(cls, markdown: markdown.Markdown, token: Token) -> Self:
        return cls(token.info.partition(" ")[0], _CODE_THEME)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = self.text.plain.rstrip()
        if self.lexer_name in ("", _DRAWING):
            drawn = self.lexer_name == _DRAWING
            block = Text(code, no_wrap=drawn, overflow="ellipsis" if drawn else "fold")
            yield Padding(block, (0, 0, 0, 2))
            return
        syntax = Syntax(
            code, self.lexer_name, theme=_CODE_THEME, word_wrap=True, background_color="default"
        )
        yield Padding(syntax, (0, 0, 0, 2))


class _Table(markdown.TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        names = all(" " not in row[0].plain for row in rows)
        if self.header and self.header.row:
            for place, head in enumerate(self.header.row.cells):
                table.add_column(head.content, overflow="fold", no_wrap=names and place == 0)
        for cells in rows:
            table.add_row(*cells)
        yield table


class RichMarkdown(markdown.Markdown):
    """A text in Markdown as Rich draws it; tags are text."""

    elements = markdown.Markdown.elements | {
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", code_theme=_CODE_THEME, hyperlinks=False)
        self.parsed = MarkdownIt("commonmark", {"html": False}).enable("table").parse(source)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(_STYLES):
            yield from super().__rich_console__(console, options)
