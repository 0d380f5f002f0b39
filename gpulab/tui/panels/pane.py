"""A scrollable view of a block, and a line or two of text.

A pane is a ScrollView of rows: as a Static within a scroll container each new text was painted
twice, before and after its layout: 23 KB a cursor key at 120x40, where a bare list takes 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from textual.events import Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from gpulab.draw.blocks import Block
from gpulab.show.terminal import plain_text


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
        self.update(Plain(content), layout=not as_high)

    @property
    def text(self) -> str:
        """Return everything it shows."""
        return plain_text(self._content, max(1, self.size.width))


class Pane(ScrollView, can_focus=True):
    """A block that one scrolls."""

    _content: Block = ""
    _rows: list[Strip]

    def __init__(self, **options: str) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._rows = []

    def show(self, content: Block, *, follow: bool = False) -> None:
        """Show a block in place of the last; `follow` keeps its end in sight where that was in
        sight.
        """
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._content = content
        self._draw()
        if follow and at_end:
            self.scroll_end(animate=False)

    def to_top(self) -> None:
        self.scroll_home(animate=False)

    def scroll_to_text(self, words: str) -> None:
        """Bring the first row that has these words into the middle, where they are anywhere."""
        found = next((y for y, row in enumerate(self._rows) if words in row.text), None)
        if found is not None:
            self.scroll_to(0, found - self.size.height // 2, animate=False)

    @property
    def room(self) -> int:
        """Return how wide a row of it may be; 0 before it has its place."""
        return max(0, self.scrollable_content_region.width - 1)

    @property
    def text(self) -> str:
        """Return everything it shows, also what is scrolled out of sight."""
        return "\n".join(row.text for row in self._rows)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return its rows, for a box that is as high as what it holds."""
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width, style = self.size.width, self.rich_style
        if y >= len(self._rows):
            return Strip.blank(width, style)
        return self._rows[y].crop_extend(0, width, style).apply_style(style)

    class Resized(Message):
        """Its room is another one: what was laid out for it no longer is."""

    def on_resize(self, event: Resize) -> None:
        self._draw()
        self.post_message(self.Resized())

    def _draw(self) -> None:
        if not self.room:
            return  # not on screen yet
        options = self.app.console.options.update(width=self.room, height=None)
        drawn_rows = self.app.console.render_lines(Plain(self._content), options, pad=False)
        before, self._rows = self._rows, [Strip(row) for row in drawn_rows]
        self.virtual_size = Size(self.room, len(self._rows))
        if len(before) != len(self._rows) and self.styles.is_auto_height:
            self.refresh(layout=True)
        for y, (old, new) in enumerate(zip_longest(before, self._rows, fillvalue=Strip([]))):
            if old != new:
                self.refresh(Region(0, y - self.scroll_offset.y, self.size.width, 1))
