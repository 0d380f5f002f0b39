"""The line above the list in which one types what to look for; the list shows what has it, letter by letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from textual.widgets import Input

from gpulab.catalog.catalog import Entry
from gpulab.catalog.search import search
from gpulab.tui.panels.field import Field
from gpulab.tui.panels.scenario_list import ScenarioList
from gpulab.views import status


class SearchBar(Field):
    """Left with Enter, which keeps what was found, or with Esc, which does not."""

    def __init__(
        self, entries: Callable[[], Sequence[Entry]], scenarios: ScenarioList, say: Callable[[str], None]
    ) -> None:
        super().__init__(placeholder="names, lessons, code", id="search")
        keep, leave = partial(self._leave, keep=True), partial(self._leave, keep=False)
        self.on_keys = {"enter": keep, "down": keep, "escape": leave}
        self._entries, self._scenarios, self._say = entries, scenarios, say

    def on_input_changed(self, event: Input.Changed) -> None:
        entries = self._entries()
        found = search(entries, event.value) if event.value.strip() else None
        self._scenarios.show_only(found)
        self._say("" if found is None else status.found(list(found.values()), len(entries)))

    def _leave(self, *, keep: bool) -> None:
        if not keep or not self.value.strip():
            self.value = ""
            self._scenarios.show_only(None)
            self.display = False
        self._say("")
        self.screen.set_focus(self._scenarios)
