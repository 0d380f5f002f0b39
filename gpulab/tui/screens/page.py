"""A screen that shows one text to be read, and goes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.console import RenderableType
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen

from gpulab.tui.panels.keys_line import KeysLine
from gpulab.tui.panels.pane import Pane
from gpulab.views.text import Glyphs


class Page(Screen[None]):
    """`content` draws it for a width in cells."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back"),
        Binding("q", "app.quit", "quit", show=False),
    ]

    def __init__(self, title: str, content: Callable[[int], RenderableType], glyphs: Glyphs) -> None:
        super().__init__()
        self._title, self._content, self._glyphs = title, content, glyphs

    def compose(self) -> ComposeResult:
        yield Pane(id="status")
        yield Pane(id="page")
        yield KeysLine(self._glyphs)

    def on_mount(self) -> None:
        self.query_one("#status", Pane).can_focus = False
        self.query_one("#page").focus()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        self.query_one("#status", Pane).show_line(f"gpulab · {self._title}", self._glyphs)
        page = self.query_one("#page", Pane)
        page.show(self._content(page.scrollable_content_region.width))
