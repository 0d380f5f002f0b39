"""What watchers of a folder see until there is a run or a class."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static


class TitleCard(Screen[None]):
    """The app takes it away when there is something to list."""

    DEFAULT_CSS = """
    TitleCard { align: center middle; }
    TitleCard > Static {
        width: auto;
        max-width: 100%;
        height: auto;
        border: round $border;
        padding: 1 3;
        text-align: center;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "app.quit", "quit", show=False)]

    def __init__(self, folder: str, command: str) -> None:
        """`folder`: the one that is watched, as it is shown; `command`: what starts a run in it."""
        super().__init__()
        self._folder, self._command = folder, command

    def compose(self) -> ComposeResult:
        text = Text()
        text.append("waiting for a run, or for a class\n\n", "bold cyan")
        text.append(f"no run is going on in {self._folder}\n\n")
        text.append("what comes is shown here by itself\n\n", "green")
        text.append("to start a run:  ").append(self._command, "bold")
        text.append("\n\nq: quit")
        yield Static(text)
