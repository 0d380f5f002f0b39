"""The keys of the lab's screen, each with an id."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from gpulab.tui.panels.tabs import TABS

LAB: list[BindingType] = [
    Binding("enter", "open", "open", id="open"),  # the list takes Enter for itself, with the same effect
    Binding("r", "run", "run", id="run"),
    Binding("s", "stop", "stop", id="stop"),
    Binding("escape", "back", "back", id="back"),
    Binding("l", "back", show=False, id="list"),
    *(Binding(str(number), f"show({name!r})", show=False, id=name) for number, name in enumerate(TABS, 1)),
    Binding("f", "next_family", show=False, id="family"),
    Binding("tab,right", "next_panel(1)", show=False, id="next_panel"),
    Binding("left", "next_panel(-1)", show=False, id="previous_panel"),
    Binding("z", "zoom", "zoom", id="zoom"),
    Binding("space", "freeze", show=False, id="freeze"),
    Binding("slash", "search", "search", id="search"),
    Binding("R", "run_picked", show=False, id="run_picked"),
    Binding("p", "app.predict", show=False, id="predict"),
    Binding("e", "app.edit", show=False, id="edit"),
    Binding("y", "app.copy", show=False, id="copy"),
    Binding("h", "app.history", "history", id="history"),
    Binding("question_mark,f1", "app.help", "help", key_display="?", id="help"),
    Binding("q", "quit", "quit", id="quit"),
    Binding("ctrl+c", "quit", "quit", show=False, priority=True),
]
