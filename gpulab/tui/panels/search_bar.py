"""The line above the list in which one types what to look for; the list shows what has it, letter by letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from gpulab.catalog.catalog import Entry
from gpulab.catalog.search import search
from gpulab.tui.panels.scenario_list import ScenarioList


class SearchBar(Input):
    """Left with Enter, which keeps what was found, or with Esc, which does not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave(False)", show=False),
        Binding("enter,down", "leave(True)", show=False),
    ]

    def __init__(self, entries: Callable[[], Sequence[Entry]], scenarios: ScenarioList) -> None:
        super().__init__(placeholder="names, lessons, code", id="search", compact=True)
        self._entries, self._scenarios = entries, scenarios

    def on_input_changed(self, event: Input.Changed) -> None:
        self._scenarios.show_only(search(self._entries(), event.value) if event.value.strip() else None)

    def action_leave(self, keep: bool) -> None:
        if not keep or not self.value.strip():
            self.value = ""
            self._scenarios.show_only(None)
            self.display = False
        self._scenarios.focus()
