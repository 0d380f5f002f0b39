"""A question before something that takes long."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from gpulab.draw.blocks import Text
from gpulab.tui.panels.pane import TextPane


class Ask(ModalScreen[bool]):
    """Dismissed with the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", "yes"),
        Binding("escape", "dismiss(False)", "back"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        box = TextPane(classes="box")
        box.border_subtitle = "enter starts, esc goes back"
        box.show(Text(self._question))
        yield box


class PressedTwice:
    """Keys that do something when they are pressed twice within 3 s."""

    def __init__(self) -> None:
        self._last = "", 0.0

    def press(self, key: str) -> bool:
        """Return whether it was the second time."""
        before, self._last = self._last, (key, monotonic())
        return before[0] == key and monotonic() - before[1] <= 3.0
