"""Where headless output goes: a console each for stdout and stderr, and whether they can show more than ASCII."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from gpulab.doctor.terminal import shows_unicode
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


@dataclass(frozen=True)
class Terminal:
    """`out` carries results, or JSON; `err` progress and errors, and results where JSON has stdout."""

    out: Console
    err: Console
    glyphs: Glyphs
    json_on_stdout: bool = False

    @property
    def results(self) -> Console:
        return self.err if self.json_on_stdout else self.out

    def show(self, content: RenderableType) -> None:
        """Print a result, filled to the width of a terminal; whole lines where it goes to a file."""
        self.results.print(content, soft_wrap=not self.results.is_terminal)

    def say(self, *lines: str) -> None:
        """Print lines of a result in one piece each, so that paths can be copied."""
        self.results.print(*map(self.glyphs, lines), sep="\n", soft_wrap=True)


def open_terminal(*, ascii_only: bool, json_on_stdout: bool = False) -> Terminal:
    """Both consoles. Python and Rich claim UTF-8 even in LANG=C, so the locale is asked as well."""
    glyphs = Glyphs(ascii_only or not shows_unicode())
    return Terminal(_console(sys.stdout), _console(sys.stderr), glyphs, json_on_stdout)


def _console(file: TextIO) -> Console:
    from rich.console import Console

    # Names, texts and errors come from scenarios: nothing of them is markup, an emoji code or a number to colour.
    return Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)
