"""A scrollable view of a block, and a line or two of text, of Textual's own widgets."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from gpulab.draw.blocks import Block
from gpulab.show.terminal import drawn, plain_text


@dataclass(frozen=True)
class Plain:
    """What is drawn, in which Rich finds neither markup nor numbers to colour."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.content, options.update(highlight=False, markup=False))


class TextPane(Static):
    """A block that keys never reach."""

    _content: Block = ""

    def show(self, content: Block, *, as_high: bool = False) -> None:
        """Show a block in place of the last; `as_high`: it takes as many rows, so that nothing is
        laid out again.
        """
        self._content = content
        self.update(Plain(drawn(content)), layout=not as_high)

    @property
    def text(self) -> str:
        """Return everything it shows."""
        return plain_text(self._content, max(1, self.size.width))


class Pane(VerticalScroll, can_focus=True):
    """A block that one scrolls."""

    def __init__(self, **options: str) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._shown = TextPane()

    def compose(self) -> ComposeResult:
        yield self._shown

    def show(self, content: Block, *, follow: bool = False, as_high: bool = False) -> None:
        """Show a block in place of the last; `follow` keeps its end in sight where that was in
        sight; `as_high` as of TextPane.
        """
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._shown.show(content, as_high=as_high)
        if follow and at_end:
            self.call_after_refresh(self.scroll_end, animate=False)

    def scroll_to_text(self, words: str) -> None:
        """Bring the first row that has these words into the middle, where they are anywhere."""
        rows = self.text.splitlines()
        found = next((y for y, row in enumerate(rows) if words in row), None)
        if found is not None:
            self.call_after_refresh(self.scroll_to, 0, found - self.size.height // 2, animate=False)

    @property
    def room(self) -> int:
        """Return how wide a row of it may be; 0 before it has its place."""
        return max(0, self.scrollable_content_region.width - 1)

    @property
    def text(self) -> str:
        """Return everything it shows, also what is scrolled out of sight."""
        return self._shown.text
