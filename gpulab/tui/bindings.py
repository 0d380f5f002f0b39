"""The user's own keys: a file `keys.toml` with lines such as `run = "ctrl+r"`, by the ids of the
bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.binding import Binding
from textual.screen import Screen

from gpulab.core.limits import NAME_LENGTH
from gpulab.core.text import cut, one_line
from gpulab.defaults import tables_in
from gpulab.features import modules
from gpulab.options import UsageError
from gpulab.session.run_files import config_folder
from gpulab.tui.panels.tabs import TABS


def key(
    id: str, keys: str, action: str, what: str, footer: str = "", display: str | None = None
) -> Binding:
    """Return a binding: `id` is its name in the user's file of keys, `footer` its word in the last
    line of the screen.
    """
    # those that begin to type: keys that come with it must find that they have
    at_once = id in ("search", "go_to", "to_end", "to_start")
    words = footer or what
    return Binding(keys, action, words, bool(footer), display, at_once, tooltip=what, id=id)


_DERIVING = [each for module in modules("keys") for each in module.KEYS]
KEYS = (
    # The list takes Enter for itself, with the same effect.
    key("open", "enter", "open", "open it: its run, or its lesson", "open", "enter"),
    key("run", "r", "run", "run it", "run"),
    key("next", "n", "next", "the next lesson of the course", "next lesson"),
    key("answers", "a", "answers", "show the answers to its questions", "answers"),
    key(
        "run_longer",
        "t",
        "app.run_longer",
        "run it again for four times as long: intervals half as wide",
        "longer",
    ),
    key("options", "p", "app.options", "parameters, device, time, sweep", "parameters"),
    key("sweep", "S", "app.sweep", "sweep: a run for each value of a parameter"),
    key("predict", "g", "app.predict", "guess the speedup, then run or replay", "guess"),
    key("stop", "s", "stop", "stop what runs, when pressed twice; what was measured stays", "stop"),
    key("back", "escape", "back", "back; it never stops a run", "back", "esc"),
    key("list", "l", "back", "back to the list"),
    key("down", "j", "move(1)", "down, as the arrow"),
    key("up", "k", "move(-1)", "up, as the arrow"),
    *(
        key(
            name, str(number), f"show({name!r})", f"show its {tab.title.lower()}", tab.title.lower()
        )
        for number, (name, tab) in enumerate(TABS.items(), 1)
    ),
    key("search", "slash", "search", "search names, lessons and code", "search", "/"),
    key(
        "course",
        "c",
        "app.course",
        "list the scenarios in the order of the course, or by topic",
        "course",
    ),
    key("freeze", "space", "freeze", "pause the view of a run", "pause"),
    key("mark", "m", "mark", "mark a scenario for R", "mark"),
    key("run_picked", "R", "run_picked", "run what was marked, one after the other"),
    key("next_panel", "tab,right", "next_panel(1)", "choose the next panel of the run", "panel"),
    key("previous_panel", "left", "next_panel(-1)", "choose the panel before it"),
    key("zoom", "z", "zoom", "let the chosen panel fill the screen", "zoom"),
    key("operations", "o", "app.operations", "all operations of the run", "operations"),
    key("family", "f", "next_family", "roofline: the next type of numbers", "numbers"),
    *(key(name, keys, f"derive({keys!r})", what) for name, keys, what in _DERIVING),
    key(
        "hide_list", "left_square_bracket", "hide_list", "hide the list, or show it again", "", "["
    ),
    key(
        "replay",
        "v",
        "app.replay",
        "replay its last run here, or the recording that ships",
        "replay",
    ),
    key("edit", "e", "app.edit", "open the file in $EDITOR, where it failed if it did", "edit"),
    key("copy", "y", "app.copy", "copy the result, and keep it as a file", "copy"),
    key("copy_whole", "Y", "app.copy(True)", "copy the result with all of its tables"),
    key("history", "h", "app.history", "all runs of this machine; d compares two", "history"),
    key("theme", "T", "app.next_theme", "another theme: dark, light, contrast, terminal, mono"),
    key("redraw", "ctrl+l", "app.redraw", "draw the screen again"),
    key("commands", "ctrl+p", "app.command_palette", "every command, by its name"),
    key("suspend", "ctrl+z", "app.suspend_process", "back to the shell: fg returns"),
    key(
        "help",
        "question_mark,f1",
        "app.help",
        "keys, and the words that are on the screen",
        "help",
        "?",
    ),
    key("quit", "q", "quit", "quit; what runs is stopped", "quit"),
)
_PLAYBACK = (
    key("pause", "space", "freeze", "pause, or go on; at the end from the start", "pause"),
    key("slower", "less_than_sign", "speed(-1)", "play slower: to 1/4x", "speed", "< >"),
    key("faster", "greater_than_sign", "speed(1)", "play faster: to 16x, instant"),
    key(
        "stage_before",
        "left_curly_bracket",
        "go_to_stage(-1)",
        "go to the start of the stage",
        "stage",
        "{ }",
    ),
    key("next_stage", "right_curly_bracket", "go_to_stage(1)", "go to the next stage"),
    key("go_to", "colon", "ask_time", "go to a time: 90, 1:30, 45%", "go to", ":"),
    key("step", "full_stop", "step", "pause, and take the next events", "step", "."),
    key("on", "shift+right", "go_by(10)", "10 seconds on"),
    key("rewind", "shift+left", "go_by(-10)", "10 seconds back"),
    key("to_end", "end", "go_to(1)", "go to its end"),
    key("to_start", "home", "go_to(0)", "go to its start"),
)


def _replay_keys() -> Iterator[Binding]:
    """Its own keys come first; of the others the last line has no more than it must."""
    yield from _PLAYBACK
    for each in KEYS:
        if each.id not in ("freeze", "replay"):
            yield each


REPLAY = tuple(_replay_keys())
_FOOTER = {
    "list": ("open", "predict", "run", "replay", "course", "search", "history"),
    "measured": ("open", "predict", "run", "replay", "history", "search", "course"),
    "lesson": ("predict", "run", "replay", "options", "answers"),
    "code": ("edit", "run", "predict", "replay", "result"),
    "result": ("next", "answers", "operations", "copy", "run_longer", "code"),
    "roofline": ("family", "result", "operations", "next", "copy"),
    "no run": ("run", "predict", "replay", "lesson", "code"),
    "running": ("freeze", "next_panel", "zoom", "lesson"),
    "replay": ("pause", "slower", "stage_before", "go_to", "next_panel", "zoom"),
    "replayed": ("next", "operations", "copy", "lesson", "pause"),
}
"""What the last line of the screen names, as far as it has room: in the list, before a run and
after one; in a tab; while something runs; and in a replay, until its end and after it.
"""
VITAL = ("stop", "back", "help", "quit")
"""Those that have room before the others."""
RUNS = {"run", "run_longer", "options", "sweep", "stop", "mark", "run_picked", "edit"}
RUNS |= {name for name, _, _ in _DERIVING}
"""Those that start something, stop it, or edit what runs: not where runs are only looked at."""
NEED_RUN = {
    "operations",
    "copy",
    "copy_whole",
    "run_longer",
    "freeze",
    "next_panel",
    "zoom",
    "family",
}
NEED_IDLE = {"run", "run_longer", "sweep", "predict", "replay", "run_picked"}
"""They are refused without a run of the lesson, or while one goes on."""
RUNNING = {each.action.removeprefix("app.").partition("(")[0] for each in KEYS if each.id in RUNS}
"""Actions that are refused where runs are only looked at."""
HELP = next(replace(each, tooltip="this page") for each in KEYS if each.id == "help")
"""For the other screens too."""
_SHOWN = {
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "escape": "esc",
    "f1": "F1",
    "ctrl+p": "ctrl+p",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "full_stop": ".",
    "colon": ":",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "plus": "+",
}


def footer_of(place: str) -> tuple[str, ...]:
    """Return the keys that matter there; of a tab that is not named, those of its result."""
    stop, *others = VITAL
    return stop, *_FOOTER.get(place, _FOOTER["result"]), *others


def own_bindings(screen: Screen[Any]) -> list[Binding]:
    """Return those that a screen declares, its own before those of what it is made of."""
    own = (each for kind in type(screen).__mro__ for each in kind.__dict__.get("BINDINGS", ()))
    return [each for each in own if isinstance(each, Binding)]


def key_names(
    keys: Iterable[Binding], keymap: Mapping[str, str], *, read_only: bool
) -> list[tuple[str, str]]:
    """(keys as a person writes them, what they do), with those that the user put in place of
    others.
    """
    shown = [each for each in keys if each.tooltip and not (read_only and each.id in RUNS)]
    names = [(shown_keys(keymap.get(each.id or "", each.key)), each.tooltip) for each in shown]
    return [("up, down", "choose, or scroll"), *names]


def shown_keys(keys: str) -> str:
    """Return keys as a person writes them."""
    return ", ".join(_SHOWN.get(name, name) for name in keys.split(","))


def keymap_path() -> Path:
    return config_folder() / "keys.toml"


def read_keymap() -> tuple[dict[str, str], str | None]:
    """(keys by the id of their binding, what of the file cannot be used). Without a file there are
    none.
    """
    path = keymap_path()
    try:
        entries = tables_in(path) if path.exists() else {}
    except UsageError as error:
        return {}, one_line(str(error))
    known = {str(each.id) for each in (*KEYS, *_PLAYBACK)}
    good = {
        name: keys
        for name, keys in entries.items()
        if name in known and isinstance(keys, str) and keys
    }
    wrong = [name for name in entries if name not in good]
    if wrong:
        names = cut(one_line(", ".join(wrong)), NAME_LENGTH)
        return (
            good,
            f'{path.name}: {names}: write lines such as run = "ctrl+r"; ids: '
            f"{' '.join(sorted(known))}",
        )
    return good, None
