"""A screen that shows one text to be read, and goes back; and the help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen

from gpulab.draw.blocks import Block
from gpulab.guide.help import help_view
from gpulab.session.run_files import at_home
from gpulab.tui.bindings import keymap_path
from gpulab.tui.panels.pane import KeysLine, Pane, TextPane


class Page(Screen[None]):
    """`content` draws it for a width in cells."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back", tooltip="back"),
        Binding("q", "app.quit", "quit", show=False),
    ]

    def __init__(self, title: str, content: Callable[[int], Block]) -> None:
        super().__init__()
        self._title, self._content = title, content

    def compose(self) -> ComposeResult:
        yield TextPane(id="status")
        yield Pane(id="page")
        yield KeysLine()

    def on_mount(self) -> None:
        self.query_one("#page").focus()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        self.query_one("#status", Pane).show_line(f"gpulab · {self._title}")
        page = self.query_one("#page", Pane)
        page.show(self._content(page.scrollable_content_region.width))


def help_page(
    about: str, shown: str, keys: Sequence[tuple[str, str]], *, of_the_list: bool
) -> Page:
    """For a screen that shows this text, with its keys and what they do."""
    path = at_home(keymap_path())
    changed_by = f"{path} changes the keys of the list; of these, only that of this page"
    if of_the_list:
        changed_by = f'{path} changes them, with lines such as: run = "ctrl+r"; ids as in ctrl+p'
    return Page("keys and words", lambda width: help_view(about, shown, keys, changed_by))
