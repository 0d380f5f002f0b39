"""HTML that is safe as it is built, and what views draw with (texts, tables, groups) as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from io import StringIO
from itertools import groupby

from rich.console import Console, ConsoleRenderable, Group, RenderableType, RichCast
from rich.constrain import Constrain
from rich.padding import Padding
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from gpulab.core.text import plain

_WIDTH = 200
"""Columns that views may take which ask for a width: enough for all that they have to say."""


class Html(str):
    """Text that is HTML already: any other is escaped where it becomes a part of an element."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: str | None) -> Html:
    """An element. `class_` is class, and `data_n` data-n; attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not content:
        return Html(f"<{name}{written}/>" if name in _EMPTY else f"<{name}{written}></{name}>")
    return Html(f"<{name}{written}>{joined(content)}</{name}>")


_EMPTY = {"meta", "br"}


def joined(parts: Iterable[str]) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else escaped(part) for part in parts))


def escaped(text: str) -> Html:
    """What a reader can see of a text, as HTML."""
    return Html(escape(plain(text)))


def of(content: RenderableType | None) -> Html:
    """A view: texts are paragraphs, tables tables, with the words and the colours that they have on
    a terminal. Lines that a terminal does not fold are a block of code.
    """
    blocks: list[Html] = []
    leaves = groupby(_leaves(content), key=lambda leaf: isinstance(leaf, Text) and leaf.no_wrap)
    for is_code, parts in leaves:
        if is_code:
            lines = Text("\n").join(part for part in parts if isinstance(part, Text))
            blocks.append(element("pre", element("code", spans(lines)), class_="plain"))
            continue
        blocks += [table(part) if isinstance(part, Table) else _paragraphs(part) for part in parts]
    return joined(blocks)


def _paragraphs(text: Text) -> Html:
    return joined(element("p", spans(part)) for part in text.split("\n\n") if part.plain.strip())


def _leaves(content: object) -> Iterator[Text | Table]:
    """The texts and tables that a view is made of."""
    match content:
        case str():
            yield Text(content)
        case Text() | Table():
            yield content
        case Group():
            for part in content.renderables:
                yield from _leaves(part)
        case Padding() | Constrain():
            yield from _leaves(content.renderable)
        case RichCast():
            yield from _leaves(content.__rich__())
        case ConsoleRenderable():
            options = _console().options.update(width=_WIDTH)
            for inner in content.__rich_console__(_console(), options):
                yield from _leaves(inner)


def table(content: Table) -> Html:
    """Columns that are at the right are numbers; rows of empty heads have none."""
    columns = content.columns
    heads = [_cell("th", column, column.header) for column in columns]
    rows = [
        element("tr", *(_cell("td", *cell) for cell in zip(columns, row, strict=True)))
        for row in zip(*(column.cells for column in columns), strict=True)
    ]
    head = [element("caption", str(content.title))] if content.title else []
    if content.show_header and any(column.header for column in columns):
        head.append(element("thead", element("tr", *heads)))
    whole = element("table", *head, element("tbody", *rows))
    return element("div", whole, class_="wide")


def _cell(name: str, column: Column, content: RenderableType) -> Html:
    """Numbers stand at the right; what a terminal cuts is cut here too."""
    if isinstance(content, str):
        content = Text(content)
    width = column.width or column.max_width
    if isinstance(content, Text) and column.overflow == "ellipsis" and width:
        content = content.copy()
        content.truncate(width, overflow="ellipsis")
    inside = spans(content) if isinstance(content, Text) else of(content)
    names = ["n"] if column.justify == "right" else []
    names += ["line1"] if column.no_wrap else []
    return element(name, inside, class_=" ".join(names) or None)


def spans(text: Text) -> Html:
    """The text in its colours, with its own line breaks."""
    parts: list[str] = []
    for segment in text.render(_console()):
        class_ = class_of(segment.style or text.style)
        for number, line in enumerate(segment.text.split("\n")):
            if number:
                parts.append(element("br"))
            if line:
                seen = class_ and not line.isspace()
                parts.append(element("span", line, class_=class_) if seen else line)
    return joined(parts)


_CLASSES = frozenset(("red", "green", "yellow", "blue", "magenta", "cyan", "bold", "dim", "italic"))
"""Black and white are what a page has anyway."""


@cache
def class_of(style: Style | str | None) -> str | None:
    """The classes of a style: its colour, of the sixteen of a terminal, and whether it is bold."""
    if isinstance(style, str):
        style = _console().get_style(style)
    if style is None:
        return None
    names = [style.color.name.removeprefix("bright_")] if style.color else []
    names += [name for name in ("bold", "dim", "italic") if getattr(style, name)]
    return " ".join(name for name in names if name in _CLASSES) or None


@cache
def _console() -> Console:
    return Console(
        file=StringIO(), width=_WIDTH, force_terminal=False, force_jupyter=False, color_system=None
    )
