"""What there is to see of one scenario, in tabs: its lesson, its run, its log."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import TabbedContent, TabPane, Tabs

from gpulab.tui.panels.pane import Pane

TABS = {"lesson": "1 Lesson", "run": "2 Result", "roofline": "3 Roofline", "log": "4 Log"}


class Detail(TabbedContent):
    """A pane a tab; only the one in sight is ever drawn."""

    def compose(self) -> ComposeResult:
        for name, title in TABS.items():
            self.compose_add_child(TabPane(title, Pane(id=f"{name}-pane"), id=name))
        yield from super().compose()

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False  # its keys would hide the list's

    @property
    def pane(self) -> Pane:
        """The one in sight."""
        return self.query_one(f"#{self.active or 'lesson'}-pane", Pane)
