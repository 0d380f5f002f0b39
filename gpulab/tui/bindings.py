"""The user's own keys: a file `keys.toml` with lines such as `run = "ctrl+r"`, by the ids of the
bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from textual.binding import Binding, BindingType
from textual.screen import Screen

from gpulab.core.files import read_regular
from gpulab.core.limits import NAME_LENGTH, USER_FILE_BYTES
from gpulab.core.text import cut, one_line
from gpulab.features import modules
from gpulab.session.run_files import config_folder
from gpulab.tui.panels.tabs import TABS


@dataclass(frozen=True)
class KeyBinding:
    """`id` is its name in the user's file of keys; `footer` its word in the last line of the
    screen.
    """

    id: str
    keys: str
    action: str
    what: str
    footer: str = ""
    display: str = ""
    at_once: bool = False
    """Keys that come with it must find what it has done."""
    runs: bool = False
    """It starts something, stops it, or edits what runs: not where runs are only looked at."""

    @property
    def binding(self) -> Binding:
        return Binding(
            self.keys,
            self.action,
            self.footer or self.what,
            show=bool(self.footer),
            key_display=self.display or None,
            id=self.id,
            priority=self.at_once,
        )


KEYS = (
    # The list takes Enter for itself, with the same effect.
    KeyBinding("open", "enter", "open", "open it: its run, or its lesson", "open", "enter"),
    KeyBinding("run", "r", "run", "run it", "run", runs=True),
    KeyBinding("next", "n", "next", "the next lesson of the course", "next lesson"),
    KeyBinding("answers", "a", "answers", "show the answers to its questions", "answers"),
    KeyBinding(
        "run_longer",
        "t",
        "app.run_longer",
        "run it again for four times as long: intervals half as wide",
        "longer",
        runs=True,
    ),
    KeyBinding(
        "options", "p", "app.options", "parameters, device, time, sweep", "parameters", runs=True
    ),
    KeyBinding("sweep", "S", "app.sweep", "sweep: a run for each value of a parameter", runs=True),
    KeyBinding("predict", "g", "app.predict", "guess the speedup, then run or replay", "guess"),
    KeyBinding(
        "stop",
        "s",
        "stop",
        "stop what runs, when pressed twice; what was measured stays",
        "stop",
        runs=True,
    ),
    KeyBinding("back", "escape", "back", "back; it never stops a run", "back", "esc"),
    KeyBinding("list", "l", "back", "back to the list"),
    KeyBinding("down", "j", "move(1)", "down, as the arrow"),
    KeyBinding("up", "k", "move(-1)", "up, as the arrow"),
    *(
        KeyBinding(
            name, str(number), f"show({name!r})", f"show its {tab.title.lower()}", tab.title.lower()
        )
        for number, (name, tab) in enumerate(TABS.items(), 1)
    ),
    KeyBinding(
        "search", "slash", "search", "search names, lessons and code", "search", "/", at_once=True
    ),
    KeyBinding(
        "course",
        "c",
        "app.course",
        "list the scenarios in the order of the course, or by topic",
        "course",
    ),
    KeyBinding("freeze", "space", "freeze", "pause the view of a run", "pause"),
    KeyBinding("mark", "m", "mark", "mark a scenario for R", "mark", runs=True),
    KeyBinding(
        "run_picked", "R", "run_picked", "run what was marked, one after the other", runs=True
    ),
    KeyBinding(
        "next_panel", "tab,right", "next_panel(1)", "choose the next panel of the run", "panel"
    ),
    KeyBinding("previous_panel", "left", "next_panel(-1)", "choose the panel before it"),
    KeyBinding("zoom", "z", "zoom", "let the chosen panel fill the screen", "zoom"),
    KeyBinding("operations", "o", "app.operations", "all operations of the run", "operations"),
    KeyBinding("family", "f", "next_family", "roofline: the next type of numbers", "numbers"),
    *(
        KeyBinding(name, key, f"derive({key!r})", what, runs=True)
        for each in modules("keys")
        for name, key, what in each.KEYS
    ),
    KeyBinding(
        "hide_list", "left_square_bracket", "hide_list", "hide the list, or show it again", "", "["
    ),
    KeyBinding(
        "replay",
        "v",
        "app.replay",
        "replay its last run here, or the recording that ships",
        "replay",
    ),
    KeyBinding(
        "edit",
        "e",
        "app.edit",
        "open the file in $EDITOR, where it failed if it did",
        "edit",
        runs=True,
    ),
    KeyBinding("copy", "y", "app.copy", "copy the result, and keep it as a file", "copy"),
    KeyBinding("copy_whole", "Y", "app.copy(True)", "copy the result with all of its tables"),
    KeyBinding(
        "history", "h", "app.history", "all runs of this machine; d compares two", "history"
    ),
    KeyBinding(
        "theme", "T", "app.next_theme", "another theme: dark, light, contrast, terminal, mono"
    ),
    KeyBinding("redraw", "ctrl+l", "app.redraw", "draw the screen again"),
    KeyBinding("commands", "ctrl+p", "app.command_palette", "every command, by its name"),
    KeyBinding("suspend", "ctrl+z", "app.suspend_process", "back to the shell: fg returns"),
    KeyBinding(
        "help",
        "question_mark,f1",
        "app.help",
        "keys, and the words that are on the screen",
        "help",
        "?",
    ),
    KeyBinding("quit", "q", "quit", "quit; what runs is stopped", "quit"),
)
_PLAYBACK = (
    KeyBinding("pause", "space", "freeze", "pause, or go on; at the end from the start", "pause"),
    KeyBinding("slower", "less_than_sign", "speed(-1)", "play slower: to 1/4x", "speed", "< >"),
    KeyBinding("faster", "greater_than_sign", "speed(1)", "play faster: to 16x, instant"),
    KeyBinding(
        "stage_before",
        "left_curly_bracket",
        "go_to_stage(-1)",
        "go to the start of the stage",
        "stage",
        "{ }",
    ),
    KeyBinding("next_stage", "right_curly_bracket", "go_to_stage(1)", "go to the next stage"),
    KeyBinding(
        "go_to", "colon", "ask_time", "go to a time: 90, 1:30, 45%", "go to", ":", at_once=True
    ),
    KeyBinding("step", "full_stop", "step", "pause, and take the next events", "step", "."),
    KeyBinding("on", "shift+right", "go_by(10)", "10 seconds on"),
    KeyBinding("rewind", "shift+left", "go_by(-10)", "10 seconds back"),
    KeyBinding("to_end", "end", "go_to(1)", "go to its end", at_once=True),
    KeyBinding("to_start", "home", "go_to(0)", "go to its start", at_once=True),
)


def _replay_keys() -> Iterator[KeyBinding]:
    """Its own keys come first; of the others the last line has no more than it must."""
    yield from _PLAYBACK
    for key in KEYS:
        if key.id not in ("freeze", "replay"):
            yield key


REPLAY = tuple(_replay_keys())
LIST_KEYS = ("open", "predict", "run", "replay", "course", "search", "history")
"""What the last line of the screen names while the list has the focus, as far as it has room."""
PANE_KEYS = {
    "lesson": ("predict", "run", "replay", "options", "answers"),
    "code": ("edit", "run", "predict", "replay", "result"),
    "result": ("next", "answers", "operations", "copy", "run_longer", "code"),
    "roofline": ("family", "result", "operations", "next", "copy"),
}
"""The same of a tab; of one that is not named, those of its result."""
MEASURED_LIST_KEYS = ("open", "predict", "run", "replay", "history", "search", "course")
"""The same once there is a run."""
WITHOUT_RUN = ("run", "predict", "replay", "lesson", "code")
RUNNING_KEYS = ("stop", "freeze", "next_panel", "zoom", "lesson")
REPLAY_KEYS = ("pause", "slower", "stage_before", "go_to", "next_panel", "zoom")
REPLAYED_KEYS = ("next", "operations", "copy", "lesson", "pause")
"""Once a replay has ended."""
ALWAYS = ("back", "help", "quit")
VITAL = ("stop", *ALWAYS)
"""Those that have room before the others."""
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
LAB: list[BindingType] = [key.binding for key in KEYS]
RUNNING = frozenset(key.action.removeprefix("app.").partition("(")[0] for key in KEYS if key.runs)
"""Actions that are refused where runs are only looked at."""
HELP = next(key.binding for key in KEYS if key.id == "help")
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


def list_keys(filtered: str, *, has_runs: bool) -> tuple[str, ...]:
    """Return the keys of the list; `filtered`: a search hides a part of it."""
    keys = MEASURED_LIST_KEYS if has_runs else LIST_KEYS
    back = ("back",) if filtered else ()
    return "stop", *keys, *back, "help", "quit"


def tab_keys(tab: str, *, has_run: bool) -> tuple[str, ...]:
    """Return the keys of a tab."""
    keys = PANE_KEYS.get(tab, PANE_KEYS["result"])
    if not has_run and tab not in ("lesson", "code"):
        keys = WITHOUT_RUN
    return "stop", *keys, *ALWAYS


def key_names(
    keys: Iterable[KeyBinding], keymap: Mapping[str, str], *, read_only: bool = False
) -> list[tuple[str, str]]:
    """(keys as a person writes them, what they do), with those that the user put in place of
    others.
    """
    shown = [key for key in keys if not (read_only and key.runs)]
    names = [(shown_keys(keymap.get(key.id, key.keys)), key.what) for key in shown]
    return [("up, down", "choose a scenario, or scroll"), *names]


def keys_of(screen: Screen[object], keymap: Mapping[str, str]) -> list[tuple[str, str]]:
    """The same of a screen beside the lab: of its bindings that have a tooltip."""
    entries = [("up, down", "choose, or scroll")]
    for namespace, binding, _, _ in screen.active_bindings.values():
        if binding.tooltip and not binding.system and namespace is not screen.app:
            entries.append((shown_keys(binding.key), binding.tooltip))
    keys = keymap.get(HELP.id or "", HELP.key)
    return [*entries, (shown_keys(keys), "this page"), ("q", "quit")]


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
        data = read_regular(path, USER_FILE_BYTES)
    except FileNotFoundError:
        return {}, None
    except OSError as error:
        return {}, f"{path.name}: {error.strerror or error}"
    import tomllib

    try:
        entries = tomllib.loads(data.decode())
    except ValueError as error:  # no TOML, or no UTF-8
        return {}, one_line(f"{path.name}: {error}")
    except RecursionError:
        return {}, f"{path.name}: nested too deeply"
    known = {key.id for key in (*KEYS, *_PLAYBACK)}
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
