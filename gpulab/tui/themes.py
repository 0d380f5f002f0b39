"""The themes, and the one that was chosen, which is kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from textual.theme import BUILTIN_THEMES

from gpulab.session.run_files import state_folder

TERMINAL = "terminal"
MONO = "mono"
_ANSI = BUILTIN_THEMES["ansi-dark"]
THEMES = (
    replace(_ANSI, name=TERMINAL),  # the terminal's own sixteen colours, in the fewest bytes
    replace(
        BUILTIN_THEMES["textual-dark"],
        name="dark",
        primary="#5fafff",
        foreground="#e4e4e4",
        background="#1c1c1c",
        surface="#1c1c1c",
        panel="#262626",
    ),
    # For projectors: black on white, without a grey that a beamer washes out.
    replace(
        BUILTIN_THEMES["textual-light"],
        name="light",
        primary="#005faf",
        foreground="#000000",
        background="#ffffff",
        surface="#ffffff",
        panel="#e4e4e4",
    ),
    replace(_ANSI, name=MONO),
)
FEW_COLOURS = tuple(replace(_ANSI, name=theme.name) for theme in THEMES)
"""For terminals with less than 256: colours of their own choice for these would be rounded."""
LIGHT = {"dark": False, "light": True}
"""Of the themes that have a background."""
NAMES = tuple(theme.name for theme in THEMES)


def kept_theme() -> str:
    """The one that was last chosen on this machine."""
    name = ""
    with suppress(OSError, ValueError):
        name = (state_folder() / "theme").read_text(encoding="utf-8").strip()
    return name if name in NAMES else TERMINAL


def keep_theme(name: str) -> None:
    """Begin with it the next time. Where it cannot be kept, it holds for this time."""
    with suppress(OSError):
        state_folder().mkdir(parents=True, exist_ok=True)
        (state_folder() / "theme").write_text(f"{name}\n", encoding="utf-8")
