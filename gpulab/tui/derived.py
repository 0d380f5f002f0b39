"""What the screen asks before a run that the lab derives from the scenario under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpulab.catalog.catalog import Entry
from gpulab.draw.blocks import Text
from gpulab.options import Options
from gpulab.session.launch import Launch
from gpulab.session.look import Look

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen


class ChooseScreen(ModalScreen[int | None]):
    """Dismissed with the place of the line that was chosen, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "back"),
        Binding("q", "app.quit", "quit", show=False),
    ]

    def __init__(
        self, title: str, lines: Sequence[tuple[Text, bool]], *, enter: str = "runs"
    ) -> None:
        """`lines`: each with whether it can be chosen; `enter`: what is then done with it."""
        super().__init__()
        self._title, self._lines, self._enter = title, lines, enter

    def compose(self) -> ComposeResult:
        choices = OptionList(*(Option(text, disabled=not able) for text, able in self._lines))
        choices.border_title = self._title
        choices.border_subtitle = f"enter {self._enter} it, esc goes back"
        yield choices

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


T = TypeVar("T")
Start = Callable[[], str | None]
"""Starts a run; returns the problem where that cannot be."""


@contextmanager
def looking() -> Iterator[Look]:
    """Ends the look with whoever waits for it: asyncio does not end before its threads."""
    look = Look()
    try:
        yield look
    finally:
        look.cancel()


async def one_of(
    screen: LabScreen, title: str, choices: Sequence[tuple[Text, T | None]]
) -> T | None:
    """Let the user choose one, of lines with their values, None of those that cannot be chosen: it
    starts a run.
    """
    lines = [(text, value is not None) for text, value in choices]
    place = await screen.app.push_screen_wait(ChooseScreen(title, lines))
    return None if place is None else choices[place][1]


def launch_of(entry: Entry, settings: Options) -> tuple[Launch, Options]:
    """With those of the chosen parameters that it has."""
    launch = Launch(entry, (entry.function,) if entry.function else ())
    scenario = entry.scenario
    known = scenario.params if scenario and not launch.functions else {}
    chosen = {name: value for name, value in settings.chosen.items() if name in known}
    return launch, replace(settings, chosen=chosen)
