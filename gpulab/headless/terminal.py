"""Where headless output goes: a console each for stdout and stderr, and whether they can show more than ASCII."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

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
    return Terminal(_console(sys.stdout), _console(sys.stderr), Glyphs(ascii_only or not _unicode()))


def _console(file: TextIO) -> Console:
    from rich.console import Console

    # Names, texts and errors come from scenarios: nothing of them is markup, an emoji code or a number to colour.
    return Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)


def _unicode() -> bool:
    # Of the environment the process was started with: Python itself sets LC_CTYPE=C.UTF-8 where it finds LANG=C.
    pairs = (line.partition("=") for line in Path("/proc/self/environ").read_text(errors="replace").split("\0"))
    environment = {name: value for name, _, value in pairs}
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environment.get(name))), "C")
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return "utf" in locale.lower() and encoding == "utf8" and os.environ.get("TERM") not in ("linux", "dumb")
