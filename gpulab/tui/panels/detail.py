"""What there is to see of one scenario, in tabs."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import TabbedContent, TabPane, Tabs

from gpulab.tui.panels.pane import Pane
from gpulab.tui.panels.tabs import TABS


class Detail(TabbedContent):
    """A pane a tab; only the one in sight is ever drawn."""

    def compose(self) -> ComposeResult:
        for number, (name, tab) in enumerate(TABS.items(), 1):
            self.compose_add_child(TabPane(f"{number} {tab.title}", Pane(id=f"{name}-pane"), id=name))
        yield from super().compose()

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False  # its keys would hide the list's

    @property
    def pane(self) -> Pane:
        """The one in sight."""
        return self.query_one(f"#{self.active or next(iter(TABS))}-pane", Pane)
