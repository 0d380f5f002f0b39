"""HTML and SVG that are safe as they are built."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

from gpulab.core.text import plain


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
    """Return what a reader can see of a text, as HTML."""
    return Html(escape(plain(text)))


@cache
def style_sheet(name: str) -> Html:
    """A style sheet that ships with the package."""
    return Html(Path(__file__).with_name(name).read_text(encoding="utf-8"))
