"""The catalog on screen: its list, the search above it, and what earlier runs came to beside each scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from gpulab.catalog.catalog import Entry, read_again
from gpulab.tui.panels.scenario_list import ScenarioList
from gpulab.views.listing import Mark
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from gpulab.tui.panels.search_bar import SearchBar

WIDE = 100
"""Columns from which on the list stands beside what it is about."""


class CatalogColumn(Vertical):
    """Entries by name, each as its file was when it was last looked at."""

    def __init__(self, entries: Sequence[Entry], glyphs: Glyphs) -> None:
        super().__init__(id="catalog")
        self.entries = {entry.name: entry for entry in entries}
        self._glyphs = glyphs
        self._bar: SearchBar | None = None
        self._marked: set[str] = set()

    def compose(self) -> ComposeResult:
        rows = [entry.row for entry in self.entries.values()]
        yield ScenarioList(rows, self._glyphs, self._width(), id="list")

    def _width(self) -> int:
        """Of the list: all of a narrow terminal, else as much as the names take."""
        return 0 if self.app.size.width >= WIDE else self.app.size.width

    @property
    def scenarios(self) -> ScenarioList:
        return self.query_one(ScenarioList)

    def read_again(self, name: str) -> Entry:
        """The entry as its file is now: one that is edited while the screen is open is what a student does all day."""
        entry = self.entries[name] = read_again(self.entries[name])
        self.scenarios.change(entry.row)
        return entry

    def mark(self, name: str, mark: Mark) -> None:
        """Put beside a scenario what its run of now came to."""
        self._marked.add(name)
        self.scenarios.mark(name, mark)

    async def search(self, say: Callable[[str], None]) -> None:
        """Type into the search, which is made when it is first asked for, and says what it found."""
        if self._bar is None:
            from gpulab.tui.panels.search_bar import SearchBar

            self._bar = SearchBar(lambda: list(self.entries.values()), self.scenarios, say)
            await self.mount(self._bar, before=self.scenarios)
        self._bar.display = True
        self.screen.set_focus(self._bar)  # at once: what is typed next may be in the terminal already

    def read_history(self) -> None:
        """In a thread: what the newest runs came to, so that the list knows it after a restart."""
        from gpulab.tui.past import newest_marks

        self.app.call_from_thread(self._show_history, newest_marks(list(self.entries.values())))

    def _show_history(self, marks: dict[str, tuple[Mark, str]]) -> None:
        for name, (mark, ago) in marks.items():
            if name not in self._marked:
                self.scenarios.mark(name, mark, ago)
