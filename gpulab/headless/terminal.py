"""Where headless output goes: a console each for stdout and stderr, and whether they can show more than ASCII."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from gpulab.run.terminal import shows_unicode
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Terminal:
    """`out` carries results, `err` progress and errors."""

    out: Console
    err: Console
    glyphs: Glyphs


def terminal(*, ascii_only: bool) -> Terminal:
    """Both consoles. Python and Rich claim UTF-8 even in LANG=C, so the locale is asked as well."""
    return Terminal(_console(sys.stdout), _console(sys.stderr), Glyphs(ascii_only or not shows_unicode()))


def _console(file: TextIO) -> Console:
    from rich.console import Console

    # Names, texts and errors come from scenarios: nothing of them is markup, an emoji code or a number to colour.
    return Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)
