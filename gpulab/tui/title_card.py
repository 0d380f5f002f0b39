"""What watchers see until there is a run: what their class is at, or what they wait for."""

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

    def __init__(self) -> None:
        super().__init__()
        self._box = Static()
        self._drawn = Text()

    def compose(self) -> ComposeResult:
        yield self._box

    def show(self, text: Text) -> None:
        """Show this, and the keys that leave it."""
        text.append("\n\nesc: look around   q: quit")
        if self._drawn != text:
            self._drawn = text
            self._box.update(text)


def of_class(shown: Shown, title: str, command: str) -> Text:
    """Return what the teacher does, and what others of the class type; `title` is that of the
    lesson, empty where it is unknown.
    """
    text = Text()
    text.append(f"{shown.name}\n\n", "bold cyan")
    text.append(f"{one_line(shown.place.lesson)}\n", "bold")
    if title:
        text.append(f"{title}\n")
    text.append("\nbegins when the teacher runs or replays it\n\n", "green")
    return text.append("to join:  ").append(command, "bold")


def of_empty(folder: str, command: str) -> Text:
    """Return what a folder without a run waits for, and what starts one."""
    text = Text(f"no run is going on in {folder}\n\n")
    text.append("the first one is shown here when it starts\n\n", "green")
    return text.append("to start one:  ").append(command, "bold")
