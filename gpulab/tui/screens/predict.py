"""Predict before a run: how many times as fast, typed as a number; a teacher types those of a class."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input

from gpulab.protocol.listing import ScenarioRow
from gpulab.tui.panels.pane import Pane
from gpulab.views.pages.predict import axis_view, guesses_of, question
from gpulab.views.text import Glyphs

_HINT = "a number such as 4; several, such as 4 2 8, are the guesses of a class. Enter runs"


class PredictScreen(Screen[list[float]]):
    """Dismissed with the guesses, or with none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "skip", "back")]

    def __init__(self, row: ScenarioRow, glyphs: Glyphs) -> None:
        super().__init__()
        self._row, self._glyphs = row, glyphs
        self._message = _HINT

    def compose(self) -> ComposeResult:
        yield Pane(id="status")
        yield Input(placeholder="how many times as fast", id="guess", compact=True)
        yield Pane(id="page")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        for pane in self.query(Pane):
            pane.can_focus = False
        self.query_one(Input).focus()
        self.call_after_refresh(self._draw)

    @on(Input.Changed)
    def _changed(self) -> None:
        self._message = _HINT
        self._draw()

    @on(Input.Submitted)
    def _commit(self) -> None:
        guesses = self._guesses()
        if guesses:
            self.dismiss(guesses)
        else:
            self._message = "type a number above zero, such as 4, or Esc"
            self._draw()

    def action_skip(self) -> None:
        self.dismiss([])

    def _guesses(self) -> list[float]:
        try:
            return guesses_of(self.query_one(Input).value)
        except ValueError:
            return []

    def _draw(self) -> None:
        page = self.query_one("#page", Pane)
        width = page.scrollable_content_region.width
        if width <= 0:
            return
        drawn = axis_view(self._guesses(), self._glyphs, width=width)
        hidden = "the promise of the lesson stays hidden until the verdict stands"
        page.show(Group(*question(self._row, self._glyphs), drawn, "", Text(self._message), Text(hidden, "dim")))
        text = Text(self._glyphs(f" gpulab · {self._row.name} · predict, then run"))
        text.pad_right(max(0, self.size.width - text.cell_len))
        self.query_one("#status", Pane).show(text)
