"""Where headless output goes: a console each for stdout and stderr, and whether they can show more than ASCII."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.doctor.terminal import shows_unicode
from gpulab.headless.console import PlainConsole
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Terminal:
    """`out` carries results, or JSON; `err` progress and errors, and results where JSON has stdout."""

    out: PlainConsole
    err: PlainConsole
    glyphs: Glyphs
    json_on_stdout: bool = False

    @property
    def results(self) -> PlainConsole:
        return self.err if self.json_on_stdout else self.out

    def show(self, content: RenderableType) -> None:
        """Print a result, filled to the width of a terminal; whole lines where it goes to a file."""
        self.results.print(content, soft_wrap=not self.results.is_terminal)

    def say(self, *lines: str) -> None:
        """Print lines of a result in one piece each, so that paths can be copied."""
        self.results.print(*map(self.glyphs, lines), sep="\n", soft_wrap=True)

    def note(self, line: str, style: str = "") -> None:
        """Print a line on stderr, in one piece."""
        self.err.print(self.glyphs(line), style=style, soft_wrap=True)


def open_terminal(*, ascii_only: bool, json_on_stdout: bool = False) -> Terminal:
    """Both consoles. Python and Rich claim UTF-8 even in LANG=C, so the locale is asked as well."""
    glyphs = Glyphs(ascii_only or not shows_unicode())
    return Terminal(PlainConsole(sys.stdout), PlainConsole(sys.stderr), glyphs, json_on_stdout)
