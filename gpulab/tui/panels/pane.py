"""A scrollable view of anything Rich can print, which resends only the rows that changed."""

from __future__ import annotations

from rich.console import RenderableType
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Pane(ScrollView, can_focus=True):
    """Shows what it was last given. Textual resends all cells of a widget that is refreshed, changed or not:
    at 4 Hz that is what floods a connection, so rows are compared first.
    """

    _content: RenderableType = ""
    _rows: list[Strip]

    def __init__(self, **options: str) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._rows = []

    def show(self, content: RenderableType, *, follow: bool = False) -> None:
        """Show a renderable in place of the last; `follow` keeps its end in sight where that was in sight."""
        self._content = content
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._draw()
        if follow and at_end:
            self.scroll_end(animate=False)

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
        options = self.app.console.options.update(width=width, height=None, highlight=False, markup=False)
        rows = [Strip(row) for row in self.app.console.render_lines(self._content, options, pad=False)]
        before, self._rows = self._rows, rows
        self.virtual_size = Size(width, len(rows))
        for y in range(max(len(before), len(rows))):
            if before[y : y + 1] != rows[y : y + 1]:
                self.refresh_line(y)
