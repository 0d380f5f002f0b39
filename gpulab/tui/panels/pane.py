"""A scrollable view of anything Rich can print, which draws only the rows that changed; and the
line of keys.

Textual's footer is a widget a key: laying those out takes half as long as all of the first screen.
"""

from __future__ import annotations

from itertools import zip_longest

from rich.style import Style
from rich.text import Text as RichText
from textual.binding import Binding
from textual.events import Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from gpulab.draw.blocks import Block, Text
from gpulab.show.terminal import drawn
from gpulab.tui.bindings import RUNNING

_NOTHING = Strip([])


class Pane(ScrollView, can_focus=True):
    """Shows what it was last given. Textual draws every row of a widget that is refreshed: at 4 Hz
    that takes half as much again of a core, so rows are compared first.
    """

    _content: Block | RichText = ""
    _rows: list[Strip]

    def __init__(self, **options: str) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._rows = []

    def show(self, content: Block | RichText, *, follow: bool = False) -> None:
        """Show a renderable in place of the last; `follow` keeps its end in sight where that was in
        sight.
        """
        self._content = content
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._draw()
        if follow and at_end:
            self.scroll_end(animate=False)

    def show_line(self, text: str, style: str = "") -> None:
        """Show one line, in its style to the right edge."""
        line = Text(f" {text}", style, no_wrap=True, overflow="ellipsis")
        self.show(line.append(" " * (self.size.width - line.cell_len)))

    def scroll_to_text(self, words: str) -> None:
        """Bring the first row that has these words into the middle, where they are anywhere."""
        found = next((y for y, row in enumerate(self._rows) if words in row.text), None)
        if found is not None:
            self.scroll_to(0, found - self.size.height // 2, animate=False)

    @property
    def text(self) -> str:
        """Everything it shows, also what is scrolled out of sight."""
        return "\n".join(row.text for row in self._rows)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width, style = self.size.width, self.rich_style
        if y >= len(self._rows):
            return Strip.blank(width, style)
        return self._rows[y].crop_extend(0, width, style).apply_style(style)

    def on_resize(self, event: Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.scrollable_content_region.width
        if not width:
            return  # not on screen yet
        options = self.app.console.options.update(
            width=width, height=None, highlight=False, markup=False
        )
        rows = [
            Strip(row)
            for row in self.app.console.render_lines(drawn(self._content), options, pad=False)
        ]
        before, self._rows = self._rows, rows
        self.virtual_size = Size(width, len(rows))
        for y, (old, new) in enumerate(zip_longest(before, rows, fillvalue=_NOTHING)):
            if old != new:
                self.refresh(Region(0, y - self.scroll_offset.y, self.size.width, 1))


class TextPane(Pane, can_focus=False):
    """A pane that keys never reach."""


_SEPARATOR = "  "


class KeysLine(TextPane):
    """Those of the bindings with the focus that are to be shown; what has no room is left out, the
    last ones first.
    """

    def __init__(self) -> None:
        super().__init__(classes="keys")

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self._show_keys())
        self.call_after_refresh(self._show_keys)

    def on_resize(self, event: Resize) -> None:
        self._show_keys()

    def _show_keys(self) -> None:
        text, shown = RichText(no_wrap=True), set()
        if not self.is_attached or not self.screen.is_current:
            return
        # which has Enter for itself, but hands it on
        typing = isinstance(self.screen.focused, Input)
        own = [
            binding for binding in self.screen.BINDINGS if typing and isinstance(binding, Binding)
        ]
        refused = RUNNING if getattr(self.screen, "read_only", "") else frozenset()
        active = [entry.binding for entry in self.screen.active_bindings.values() if entry.enabled]
        for binding in [*own, *active]:
            if not binding.show or binding.action in shown or binding.action in refused:
                continue
            shown.add(binding.action)
            key, what = (
                self.app.get_key_display(binding),
                binding.description,
            )
            if text.cell_len + len(_SEPARATOR) + len(key) + 1 + len(what) > self.size.width:
                break
            action = binding.action if "." in binding.action else f"screen.{binding.action}"
            click = Style.from_meta({"@click": action})
            text.append(_SEPARATOR if shown - {binding.action} else " ")
            text.append(key, Style(bold=True, color="cyan") + click)
            text.append(f" {what}", click)
        self.show(text)
