"""What watchers of a class see until its first run."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from gpulab.core.text import one_line
from gpulab.session.classroom import Shown


class TitleCard(Screen[None]):
    """Left with Esc, and by the app when a run starts."""

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
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter", "app.look_around", "look around", tooltip="the list"),
        Binding("q", "app.quit", "quit", show=False),
    ]

    def __init__(self, command: str) -> None:
        """`command`: what others of the class type."""
        super().__init__()
        self._command = command
        self._box = Static()
        self._drawn: tuple[Shown, str] | None = None

    def compose(self) -> ComposeResult:
        yield self._box

    def show(self, shown: Shown, title: str) -> None:
        """Show what the teacher does; `title` is that of the lesson, empty where it is unknown."""
        if self._drawn == (shown, title):
            return
        self._drawn = shown, title
        text = Text()
        text.append(f"{shown.name}\n\n", "bold cyan")
        text.append(f"{one_line(shown.place.lesson)}\n", "bold")
        if title:
            text.append(f"{title}\n")
        text.append("\nbegins when the teacher runs or replays it\n\n", "green")
        text.append("to join:  ")
        text.append(self._command, "bold")
        text.append("\n\nesc: look around   q: quit")
        self._box.update(text)
