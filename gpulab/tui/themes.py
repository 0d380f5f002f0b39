"""The themes, and the one that was chosen, which is kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from rich.terminal_theme import TerminalTheme
from textual.theme import BUILTIN_THEMES, Theme

from gpulab.core.files import read_regular, write_whole
from gpulab.core.limits import USER_FILE_BYTES
from gpulab.core.terminal import colour_count
from gpulab.session.run_files import state_folder

DARK, LIGHT, CONTRAST, TERMINAL, MONO = "dark", "light", "contrast", "terminal", "mono"
TITLES = {
    DARK: "dark",
    LIGHT: "light, for projectors",
    CONTRAST: "contrast",
    TERMINAL: "terminal, its own colours",
    MONO: "mono, without colours",
}
NAMES = tuple(TITLES)
_ANSI = BUILTIN_THEMES["ansi-dark"]


@dataclass(frozen=True)
class Palette:
    """The colours of a theme: of the screen, and what it shows the sixteen names of colours as:
    blue is the baseline, cyan a variant, yellow and red are trouble.
    """

    screen: str
    panel: str
    chosen: str
    frame: str
    text: str
    faint: str
    sixteen: str
    """Black, red, green, yellow, blue, magenta, cyan, white; then the bright ones."""

    @property
    def names(self) -> list[str]:
        return self.sixteen.split()

    @property
    def ansi(self) -> TerminalTheme:
        """Return what styles that name a colour are drawn with."""
        colours = [_triplet(colour) for colour in self.names]
        return TerminalTheme(_triplet(self.screen), _triplet(self.text), colours[:8], colours[8:])


PALETTES = {
    DARK: Palette(
        screen="#10131c",
        panel="#1b2030",
        chosen="#273055",
        frame="#3b4261",
        text="#c8d3f5",
        faint="#7a88b8",
        sixteen="#1b2030 #ff757f #c3e88d #ffc777 #82aaff #c099ff #4fd6be #c8d3f5 "
        "#5b6796 #ff966c #d7f5a6 #ffd8a0 #65bcff #fca7ea #86e1b0 #ffffff",
    ),
    # For projectors: black on white, without a grey that a beamer washes out.
    LIGHT: Palette(
        screen="#ffffff",
        panel="#e9edf5",
        chosen="#cfe0ff",
        frame="#8a94a8",
        text="#000000",
        faint="#4a5468",
        sixteen="#ffffff #b3001b #1f6f00 #8a5a00 #0047b3 #7a1fa2 #00695c #3a3a3a "
        "#5a6478 #c0392b #2e7d00 #9a6700 #1565c0 #9c27b0 #00796b #000000",
    ),
    CONTRAST: Palette(
        screen="#000000",
        panel="#000000",
        chosen="#0000c0",
        frame="#ffffff",
        text="#ffffff",
        faint="#e0e0e0",
        sixteen="#000000 #ff6b6b #7dff7d #ffff55 #7db8ff #ff9dff #55ffff #ffffff "
        "#c0c0c0 #ff9d9d #a8ffa8 #ffff9d #a8d0ff #ffc4ff #9dffff #ffffff",
    ),
}


_OF_SIXTEEN = {
    "border": "ansi_blue",
    "footer-key-foreground": "ansi_blue",
    "scrollbar": "ansi_bright_black",
    # without colours another ground is in reverse, as the thumb is
    "scrollbar-background": "ansi_default",
    "scrollbar-background-hover": "ansi_default",
    "scrollbar-background-active": "ansi_default",
    "block-cursor-foreground": "ansi_bright_white",
    "block-cursor-background": "ansi_blue",
    "block-cursor-text-style": "bold underline",  # which is seen without colours, too
    "block-cursor-blurred-foreground": "ansi_default",
    "block-cursor-blurred-background": "ansi_default",
    "block-cursor-blurred-text-style": "bold underline",
}
"""Where the terminal's own colours are used."""


def _triplet(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _theme(name: str) -> Theme:
    if name not in PALETTES:  # the terminal's own sixteen colours
        return replace(_ANSI, name=name, variables={**_ANSI.variables, **_OF_SIXTEEN})
    palette = PALETTES[name]
    _, red, green, yellow, blue, _, cyan, *_ = palette.names
    return Theme(
        name=name,
        primary=blue,
        secondary=cyan,
        accent=cyan,
        warning=yellow,
        error=red,
        success=green,
        foreground=palette.text,
        background=palette.screen,
        surface=palette.screen,
        panel=palette.panel,
        dark=name != LIGHT,
        variables={
            "border": blue,
            "border-blurred": palette.frame,
            "block-cursor-background": palette.chosen,
            "block-cursor-foreground": palette.text,
            "block-cursor-blurred-background": palette.panel,
            "block-cursor-blurred-foreground": palette.text,
            "footer-background": palette.panel,
            "footer-foreground": palette.text,
            "footer-key-foreground": blue,
            "footer-description-foreground": palette.faint,
            "scrollbar": palette.frame,
            "scrollbar-hover": blue,
            "scrollbar-active": blue,
            "scrollbar-background": palette.screen,
            "scrollbar-background-hover": palette.screen,
            "scrollbar-background-active": palette.screen,
            "scrollbar-corner-color": palette.screen,
        },
    )


THEMES = tuple(map(_theme, NAMES))


def kept_theme() -> str:
    """Return the one that was last chosen on this machine; else that of its colours."""
    with suppress(OSError, UnicodeError):
        name = read_regular(state_folder() / "theme", USER_FILE_BYTES).decode().strip()
        if name in NAMES:
            return name
    return DARK if colour_count() >= 1 << 24 else TERMINAL


def keep_theme(name: str) -> None:
    """Begin with it the next time. Where it cannot be kept, it holds for this time."""
    with suppress(OSError):
        state_folder().mkdir(parents=True, exist_ok=True)
        write_whole(state_folder() / "theme", f"{name}\n".encode())
