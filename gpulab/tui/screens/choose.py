"""A short list over the screen, of which one line is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpulab.draw.blocks import Text
from gpulab.show.terminal import of_text


class ChooseScreen(ModalScreen[int | None]):
    """Dismissed with the place of the line that was chosen, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("q", "app.quit", "quit", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[tuple[Text, bool]]) -> None:
        """`lines`: each with whether it can be chosen."""
        super().__init__()
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        choices = OptionList(
            *(Option(of_text(text), disabled=not able) for text, able in self._lines)
        )
        choices.border_title = self._title
        choices.border_subtitle = "enter runs it, esc goes back"
        yield choices

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)

    def action_leave(self) -> None:
        self.dismiss(None)
