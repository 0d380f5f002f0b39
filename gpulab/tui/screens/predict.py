"""Predict before a run: how many times as fast, and what limits the baseline; a teacher types those
of a class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input

from gpulab.catalog.catalog import ScenarioRow
from gpulab.core.findings import Finding
from gpulab.draw.blocks import Group, Text
from gpulab.features.predictions.report import LIMITS, Prediction, record
from gpulab.features.predictions.view import (
    axis_view,
    limit_of,
    predictions_of,
    question,
    record_line,
)
from gpulab.tui.panels.field import InputLine
from gpulab.tui.panels.pane import TextPane
from gpulab.tui.screens.page import name_box

_HINT = "a number such as 4; several, such as 4 2 8, are the predictions of a class"
_HIDDEN = "the claim of the lesson is hidden until the verdict is final"


class PredictScreen(ModalScreen["Prediction | None"]):
    """Dismissed with the prediction, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "commit", "guess"),
        Binding("down", "app.focus_next", "the other question"),
        Binding("escape", "dismiss(None)", "back"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-high")]  # noqa: RUF012

    def __init__(self, row: ScenarioRow, skipped: Mapping[str, Finding], then: str) -> None:
        """`skipped`: the variants that are left out here, and why; `then`: whether it is run then,
        or replayed.
        """
        super().__init__()
        self._then = then
        self._row, self._skipped = row, skipped
        self._record = record_line(*record())
        self._message = Text(_HINT)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box", classes="box", can_focus=False):
            yield TextPane(id="question")
            yield InputLine(placeholder="a number", id="speedup")
            yield TextPane(id="limit-question")
            yield InputLine(
                placeholder=f"{', '.join(LIMITS)}: a letter is enough, or nothing", id="limit"
            )
            yield TextPane(id="axis")

    def on_mount(self) -> None:
        first, second = self.query(InputLine)
        first.on_keys = {**first.on_keys, "enter": self._go_on}
        second.on_keys = {**second.on_keys, "enter": self.action_commit}
        self.set_focus(self.query_one("#speedup"))

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_descendant_focus(self) -> None:
        self._draw()

    @on(Input.Changed)
    def _changed(self) -> None:
        is_wrong = bool(self._typed("speedup").strip()) and not self._predictions()
        self._say(_HINT, "yellow" if is_wrong else "")

    def _go_on(self) -> None:
        """Ask the second question once the first has an answer."""
        if self._predictions():
            self.set_focus(self.query_one("#limit"))
        else:
            self.action_commit()

    def action_commit(self) -> None:
        """Run it, where there is a prediction."""
        try:
            limit = limit_of(self._typed("limit"))
        except ValueError:
            return self._say(f"one of {', '.join(LIMITS)}, or nothing", "yellow")
        if predictions := self._predictions():
            self.dismiss(Prediction(tuple(predictions), limit))
        else:
            self._say("type a number above zero, such as 4, or Esc", "yellow")

    def _say(self, message: str, style: str = "") -> None:
        self._message = Text(message, style)
        self._draw()

    def _typed(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value

    def _predictions(self) -> list[float]:
        try:
            return predictions_of(self._typed("speedup"))
        except ValueError:
            return []

    def _draw(self) -> None:
        axis = self.query_one("#axis", TextPane)
        width = axis.size.width
        if width <= 0:
            return
        *above, asked = question(self._row, self._skipped)
        self.query_one("#question", TextPane).show(Group(*above, asked))
        limits = Text(f"And what limits {self._row.variants[0]}?", "bold")
        self.query_one("#limit-question", TextPane).show(limits)
        drawn = axis_view(self._predictions(), width=width)
        axis.show(Group(drawn, self._message, Text(_HIDDEN), Text(self._record)))
        goes_on = self.focused is self.query_one("#speedup") and self._predictions()
        enter = "next question" if goes_on else self._then
        title = f"{self._row.name} · guess, then {self._then}"
        name_box(self.query_one("#box"), title, commit=enter)
