"""Blocks as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from gpulab.core.text import plain
from gpulab.draw.blocks import (
    Code,
    Heading,
    Leaf,
    Markdown,
    Table,
    Text,
    joined_leaves,
    styled_words,
)
from gpulab.draw.canvas import fit
from gpulab.draw.figure import Figure
from gpulab.show.markup import Html, element, joined
from gpulab.show.svg import svg

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Column


def of(block: RenderableType | None) -> Html:
    """A block: texts are paragraphs, tables tables, with the words and the colours that they have
    on a terminal. Lines that a terminal does not fold are a block of code.
    """
    # columns for views that ask: enough for all that they have to say
    return joined(map(_leaf_html, joined_leaves(block, 200)))


def _leaf_html(leaf: Leaf) -> Html:
    match leaf:
        case Table():
            return table(leaf)
        case Markdown():
            return element("div", _markdown(leaf), class_="lesson")
        case Code():
            return _code(leaf)
        case Figure():
            return svg(leaf)
        case Heading():
            aside = element("span", leaf.aside, class_=class_of(leaf.style))
            return element("h3", leaf.words, *([" ", aside] if leaf.aside else []))
        case Text() if leaf.no_wrap:
            return element("pre", element("code", spans(leaf)), class_="plain")
    return joined(element("p", spans(line)) for line in _paragraphs(leaf))


def _paragraphs(text: Text) -> Iterator[Text]:
    """The texts between its empty lines."""
    for has_words, lines in groupby(
        text.split(allow_blank=True), key=lambda line: bool(line.plain)
    ):
        paragraph = Text("\n").join(lines)
        paragraph.style = text.style
        if has_words and paragraph.plain.strip():
            yield paragraph


def _code(block: Code) -> Html:
    """Numbers and signs are drawn by the style sheet: what is copied is code."""
    lines = []
    for number, sign, line in block.lines:
        code = spans(line)
        if number in block.failed:
            message = element("span", f"  ◀ {block.failed[number]}", class_="red bold")
            code = joined([code, message])
        name = {"+": "ins", "-": "del"}.get(sign, "span")
        lines.append(element(name, code, "\n", class_="line", data_n=f"{number:>4} {sign}"))
    return element("pre", element("code", *lines))


def _markdown(block: Markdown) -> Html:
    """Without images, which would be a request; tags are text."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return Html(reader.render(plain(block.source)))


def table(content: Table) -> Html:
    """Columns that are at the right are numbers; rows of empty heads have none."""
    columns = content.columns
    head = [element("caption", str(content.title))] if content.title else []
    if content.show_header and any(column.header for column in columns):
        heads = [_cell("th", column, column.header) for column in columns]
        head.append(element("thead", element("tr", *heads)))
    rows = [
        element("tr", *(_cell("td", *cell) for cell in zip(columns, row, strict=True)))
        for row in content.cells
    ]
    whole = element("table", *head, element("tbody", *rows))
    return element("div", whole, class_="wide")


def _cell(name: str, column: Column, content: RenderableType) -> Html:
    """Numbers stand at the right; what a terminal cuts is cut here too."""
    inside = _inside(column, Text(content) if isinstance(content, str) else content)
    names = ["n"] if column.justify == "right" else []
    names += ["line1"] if column.no_wrap else []
    return element(name, inside, class_=" ".join(names) or None)


def _inside(column: Column, content: RenderableType) -> Html:
    if not isinstance(content, Text):
        return of(content)
    width = column.width or column.max_width
    if column.overflow == "ellipsis" and width and content.cell_len > width:
        content = Text(fit(content.plain, width), content.style)
    return spans(content)


def spans(text: Text) -> Html:
    """The text in its colours, with its own line breaks."""
    parts: list[str] = []
    for words, style in styled_words(text):
        class_ = class_of(f"{text.style} {style}")
        for number, line in enumerate(words.split("\n")):
            if number:
                parts.append(element("br"))
            if line:
                seen = class_ and not line.isspace()
                parts.append(element("span", line, class_=class_) if seen else line)
    return joined(parts)


_COLORS = frozenset(("red", "green", "yellow", "blue", "magenta", "cyan"))
"""Black and white are what a page has anyway."""
_KINDS = ("bold", "dim", "italic", "block", "inside")


@cache
def class_of(style: str) -> str | None:
    """The classes of a style such as "bold not dim bright_red": the last colour, and its kinds. A
    word on its own colour is a block, on another one it stands inside a block.
    """
    color = ""
    kinds: set[str] = set()
    words = iter(style.split())
    for word in words:
        if word == "not":
            kinds.discard(next(words))
        elif word in _KINDS:
            kinds.add(word)
        elif word == "on":
            before, color = color, next(words).removeprefix("bright_")
            kinds.add("block" if before == color else "inside")
        else:
            color = word.removeprefix("bright_")
    names = [color] * (color in _COLORS) + [kind for kind in _KINDS if kind in kinds]
    return " ".join(names) or None
