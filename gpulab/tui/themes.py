"""The themes, and the one that was chosen, which is kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from textual.theme import BUILTIN_THEMES

from gpulab.core.files import read_regular, write_whole
from gpulab.core.limits import USER_FILE_BYTES
from gpulab.session.run_files import at_home, state_folder

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


def kept_theme() -> tuple[str, str | None]:
    """(the one that was last chosen on this machine, why it is not known)."""
    path = state_folder() / "theme"
    try:
        name = read_regular(path, USER_FILE_BYTES).decode().strip()
    except FileNotFoundError:
        return TERMINAL, None
    except OSError as error:
        return TERMINAL, f"{at_home(path)}: {error.strerror or error}"
    except UnicodeError:
        name = ""
    return (name, None) if name in NAMES else (TERMINAL, f"{at_home(path)}: it names no theme")


def keep_theme(name: str) -> None:
    """Begin with it the next time. Where it cannot be kept, it holds for this time."""
    with suppress(OSError):
        state_folder().mkdir(parents=True, exist_ok=True)
        write_whole(state_folder() / "theme", f"{name}\n".encode())
