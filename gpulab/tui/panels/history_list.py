"""All runs of this machine, the newest first: only the lines in sight are ever drawn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
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
from gpulab.views.pages.history import columns, line, name_width
from gpulab.views.text import Glyphs

_CURSOR = Style(color="default", bgcolor="default", reverse=True)
_SIGNS = "AB"
_HEAD = 1
"""Lines above the first run, which do not scroll."""


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
        """The cursor is on another run, or others are listed around it."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="runs")
        self._glyphs = glyphs
        self._all: list[tuple[PastRun, str]] = []
        """With what one may look for, the newest first."""
        self._runs: list[PastRun] = []
        self._words: list[str] = []
        self._only: PastRun | None = None
        """Where only runs of its scenario are listed."""
        self._cursor = 0
        self._longest = 0
        self.marked: list[PastRun] = []
        self._now = datetime.now(UTC)

    def add(self, runs: Sequence[tuple[PastRun, str]]) -> None:
        """More runs, each with what one may look for; the cursor stays on its run."""
        self._all += runs
        self._all.sort(key=lambda both: both[0].at, reverse=True)
        self._longest = max([self._longest, *(len(run.scenario) for run, _ in runs)])
        before, chosen = self._in_sight, self.chosen if self._cursor else None
        self._choose()
        if not before or any(old is not new for old, new in zip_longest(before, self._in_sight)):
            self._go_to(chosen)

    def show_only(self, text: str) -> None:
        """Those in which every word of the text is found."""
        self._words = text.casefold().split()
        self._choose()
        self._go_to(None)

    def toggle_scenario(self) -> bool:
        """List the runs of the chosen one's scenario only, or all again; returns whether it is one scenario's."""
        chosen = self.chosen
        self._only = chosen if self._only is None else None
        self._choose()
        self._go_to(chosen)
        return self._only is not None

    @property
    def chosen(self) -> PastRun | None:
        """The run under the cursor."""
        return self._runs[self._cursor] if self._runs else None

    @property
    def counts(self) -> tuple[int, int]:
        """(how many are shown, how many there are)."""
        return len(self._runs), len(self._all)

    def of_scenario(self, chosen: PastRun) -> list[PastRun]:
        """All runs of a run's scenario, the oldest first."""
        path, name = chosen.path, chosen.scenario
        return [run for run, _ in reversed(self._all) if run.path == path and run.scenario == name]

    def action_move(self, by: int) -> None:
        before, self._cursor = self._cursor, min(max(self._cursor + by, 0), max(0, len(self._runs) - 1))
        if before != self._cursor:
            self._refresh_row(before)
            self._refresh_row(self._cursor)
            self._scroll_to_cursor()
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
        width = self.scrollable_content_region.width
        name = name_width(self._longest, width - 2)
        if y < _HEAD:
            return self._strip(Text("  ").append_text(columns(self._glyphs, width - 2, name)), width)
        place = y - _HEAD + self.scroll_offset.y
        if place >= len(self._runs):
            return Strip.blank(width, self.rich_style)
        run = self._runs[place]
        sign = next((sign for sign, marked in zip(_SIGNS, self.marked, strict=False) if marked is run), " ")
        text = Text(f"{'>' if place == self._cursor else ' '}{sign}")
        text.append_text(line(run, self._now, self._glyphs, width - 2, name))
        return self._strip(text, width, _CURSOR if place == self._cursor else None)

    def _strip(self, text: Text, width: int, style: Style | None = None) -> Strip:
        text.pad_right(max(0, width - text.cell_len))
        segments = list(text.render(self.app.console))
        if style is not None:
            segments = list(Segment.apply_style(segments, post_style=style))
        return Strip(segments).crop_extend(0, width, self.rich_style).apply_style(self.rich_style)

    def _choose(self) -> None:
        words, only = self._words, self._only
        path, name = (only.path, only.scenario) if only else ("", "")
        every: Sequence[tuple[PastRun, str]] = self._all
        for word in words:
            every = [both for both in every if word in both[1]]
        self._runs = [run for run, _ in every if only is None or (run.path == path and run.scenario == name)]
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._runs) + _HEAD)

    @property
    def _in_sight(self) -> list[PastRun]:
        return self._runs[self.scroll_offset.y : self.scroll_offset.y + self.size.height]

    def _go_to(self, chosen: PastRun | None) -> None:
        """The cursor on that run where it is listed, else on the first one."""
        self._cursor = next((place for place, run in enumerate(self._runs) if run is chosen), 0)
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved())

    def _scroll_to_cursor(self) -> None:
        """The first line stands still, so that one line less scrolls."""
        top, rows = self.scroll_offset.y, max(1, self.size.height - _HEAD)
        self.scroll_to(0, min(max(top, self._cursor - rows + 1), self._cursor), animate=False)

    def _refresh_row(self, place: int) -> None:
        self.refresh(Region(0, place + _HEAD - self.scroll_offset.y, self.size.width, 1))
