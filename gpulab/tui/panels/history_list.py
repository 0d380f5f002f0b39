"""All runs of this machine, the newest first: only the lines in sight are ever drawn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpulab.report.past_run import PastRun
from gpulab.views.pages.history import line, matches
from gpulab.views.text import Glyphs

_CURSOR = Style(color="default", bgcolor="default", reverse=True)
_SIGNS = "AB"


class HistoryList(ScrollView, can_focus=True):
    """A line a run, with a cursor, and up to two that are marked, A and B."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("space", "mark", "mark"),
    ]

    class Moved(Message):
        """The cursor is on another run."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="runs")
        self._glyphs = glyphs
        self._all: Sequence[PastRun] = ()
        self._runs: Sequence[PastRun] = ()
        self._cursor = 0
        self.marked: list[PastRun] = []
        self._now = datetime.now(UTC)

    def fill(self, runs: Sequence[PastRun]) -> None:
        """The runs, the oldest first."""
        self._all = list(reversed(runs))
        self.show_only("")

    def show_only(self, text: str) -> None:
        """Those in which every word of the text is found."""
        words = text.casefold().split()
        self._runs = [run for run in self._all if matches(run, words)] if words else self._all
        self._cursor = 0
        self.virtual_size = Size(self.size.width, len(self._runs))
        self.scroll_to(0, 0, animate=False)
        self.refresh()
        self.post_message(self.Moved())

    @property
    def chosen(self) -> PastRun | None:
        """The run under the cursor."""
        return self._runs[self._cursor] if self._runs else None

    @property
    def counts(self) -> tuple[int, int]:
        """(how many are shown, how many there are)."""
        return len(self._runs), len(self._all)

    def action_move(self, by: int) -> None:
        before, self._cursor = self._cursor, min(max(self._cursor + by, 0), max(0, len(self._runs) - 1))
        if before != self._cursor:
            self._refresh_row(before)
            self._refresh_row(self._cursor)
            self.scroll_to_region(Region(0, self._cursor, self.size.width, 1), animate=False)
            self.post_message(self.Moved())

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take its mark away; a third one takes the place of B."""
        run = self.chosen
        if run is None:
            return
        if run in self.marked:
            self.marked.remove(run)
        else:
            self.marked = [*self.marked[:1], run]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        place, width = y + self.scroll_offset.y, self.size.width
        if place >= len(self._runs):
            return Strip.blank(width, self.rich_style)
        run = self._runs[place]
        sign = _SIGNS[self.marked.index(run)] if run in self.marked else " "
        text = Text(f"{'>' if place == self._cursor else ' '}{sign}", no_wrap=True)
        text.append_text(line(run, self._now, self._glyphs, width - 2))
        segments = list(text.render(self.app.console))
        if place == self._cursor:
            segments = list(Segment.apply_style(segments, post_style=_CURSOR))
        return Strip(segments).crop_extend(0, width, self.rich_style).apply_style(self.rich_style)

    def _refresh_row(self, place: int) -> None:
        self.refresh(Region(0, place - self.scroll_offset.y, self.size.width, 1))
