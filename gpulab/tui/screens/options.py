"""What refines the runs of one scenario: its parameters, the device, the time, and a sweep; checked
as one types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from gpulab.catalog.catalog import Entry, ScenarioRow
from gpulab.catalog.needs import default_device
from gpulab.draw.blocks import Text
from gpulab.features import present
from gpulab.options import Options, UsageError, flag_of
from gpulab.session.requests import request_for, usual_time_s
from gpulab.tui.panels.field import InputLine
from gpulab.tui.panels.pane import TextPane
from gpulab.tui.screens.page import name_box

_DEVICE, _TIME, _SWEEP = "device", "time", "sweep"
_PARAMETER = "parameter-"


@dataclass(frozen=True)
class _FormLine:
    """A line of the form. An empty one takes the default, which stands in it as long as nothing is
    typed.
    """

    id: str
    name: str
    default: str
    value: str
    hint: str


class OptionsScreen(ModalScreen["tuple[Options, str, bool] | None"]):
    """Dismissed with the options typed, the sweep (empty where none is to be run), and whether to
    start at once; or with None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "close(True)", "run"),
        Binding("ctrl+s", "close(False)", "keep for later"),
        Binding("escape", "dismiss(None)", "back"),
    ]

    def __init__(self, entry: Entry, settings: Options, *, at_sweep: bool = False) -> None:
        super().__init__()
        self._entry, self._settings = entry, settings
        self._fields = list(_fields(entry.row, settings))
        self._first = _SWEEP if at_sweep else self._fields[0].id
        self._sweeps = at_sweep

    def compose(self) -> ComposeResult:
        width = max(len(field.name) for field in self._fields) + 2
        with VerticalScroll(id="box", classes="box", can_focus=False):
            for field in self._fields:
                with Horizontal(classes="field"):
                    label = Label(Content(f" {field.name}"), classes="name")
                    label.styles.width = width
                    yield label
                    yield InputLine(field.value, placeholder=field.default, id=field.id)
                    yield Label(Content(field.hint), classes="hint")
            yield TextPane(id="problem")

    def on_mount(self) -> None:
        for field in self.query(InputLine):
            field.on_keys = {**field.on_keys, "enter": partial(self.action_close, run=True)}
        self.set_focus(self.query_one(f"#{self._first}", Input))
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @on(Input.Changed)
    def _draw(self) -> None:
        name_box(self.query_one("#box"), f"{self._entry.name} · parameters, device, time")
        problem = self._problem()
        words = Text(f"\n{problem}", "bold red") if problem else Text(f"\n{_HINT}")
        self.query_one("#problem", TextPane).show(words)

    def action_close(self, run: bool) -> None:
        """Take what was typed, unless a problem is on screen."""
        if self._problem() is None:
            settings, sweep = self._typed()
            if self._sweeps and run and not sweep:
                words = Text("\na sweep needs a parameter and its values: n=16,32,64", "bold red")
                return self.query_one("#problem", TextPane).show(words)
            self.dismiss((settings, sweep, run))

    def _typed(self) -> tuple[Options, str]:
        """The settings, and the sweep. UsageError where a time is no number."""
        texts = {
            field.id: self.query_one(f"#{field.id}", Input).value.strip() for field in self._fields
        }
        names = {field.id: field.name for field in self._fields}
        chosen = {
            names[key]: text for key, text in texts.items() if key.startswith(_PARAMETER) and text
        }
        device = _checked("device", texts[_DEVICE])
        time_s = _checked("time_s", texts[_TIME].removesuffix("s").strip())
        settings = replace(self._settings, chosen=chosen, device=device, time_s=time_s)
        return settings, texts.get(_SWEEP, "")

    def _problem(self) -> str | None:
        """Why no run can be made with what was typed."""
        try:
            settings, sweep = self._typed()
            if self._entry.function:
                return None
            request_for(self._entry, settings)
            if sweep and (sweeps := present("sweeps.runs")) is not None:
                swept = sweeps.SweepRuns.of_text(self._entry, sweep, settings)
                for value in swept.values:
                    request_for(
                        self._entry,
                        replace(settings, chosen={**settings.chosen, swept.parameter: value}),
                    )
        except UsageError as error:
            return str(error).removeprefix("--set ").removeprefix("--sweep ").removeprefix("--")
        return None


def _checked(name: str, text: str) -> Any:
    flag = flag_of(name)
    return flag.value(text, f"{flag.name} ") if text else None


_HINT = "an empty field takes the default that it shows; up and down: another field"


def _fields(row: ScenarioRow, settings: Options) -> Iterator[_FormLine]:
    device = settings.device or default_device()
    for place, (name, default) in enumerate(row.params.items()):
        here = row.cpu.get(name, default) if device == "cpu" else default
        both = f"{default} on a GPU, {row.cpu[name]} on a CPU" if name in row.cpu else ""
        yield _FormLine(
            f"{_PARAMETER}{place}", name, str(here), settings.chosen.get(name, ""), both
        )
    yield _FormLine(
        _DEVICE, "device", default_device(), settings.device or "", "cpu, cuda or cuda:N"
    )
    usual = f"{settings.time_s:g}" if settings.time_s else ""
    yield _FormLine(
        _TIME,
        "time",
        f"{usual_time_s(settings):g}",
        usual,
        "seconds; four times as many halve intervals",
    )
    if row.params:
        own = "; ".join(
            f"{name}={','.join(map(str, values))}" for name, values in row.sweep.items()
        )
        yield _FormLine(
            _SWEEP, "sweep", "name=a,b,c", "", f"its own: {own}" if own else "a run for each value"
        )
