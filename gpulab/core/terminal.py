"""What the terminal can show, asked of the environment: neither Python nor Rich can be believed
about it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def shows_unicode() -> bool:
    """Return whether characters outside ASCII reach a person's eyes."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    bare = os.environ.get("TERM") in ("linux", "dumb")
    return (
        "utf" in locale().lower()
        and encoding == "utf8"
        and not bare
        and tmux_shows_unicode() is not False
    )


def locale() -> str:
    """The locale of the terminal, such as C or en_US.UTF-8."""
    # Of the environment the process was started with: Python itself sets LC_CTYPE=C.UTF-8 where it
    # finds LANG=C.
    pairs = (
        line.partition("=")
        for line in Path("/proc/self/environ").read_text(errors="replace").split("\0")
    )
    environment = {name: value for name, _, value in pairs}
    return next(
        (value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environment.get(name))), "C"
    )


@cache
def tmux_shows_unicode() -> bool | None:
    """Ask tmux whether its client shows Unicode; None outside tmux, or where it does not answer."""
    if not os.environ.get("TMUX"):
        return None
    from gpulab.proc.spawn import HangsError, capture

    with suppress(OSError, HangsError):
        asked = capture(["tmux", "display", "-p", "#{client_utf8}"], 1.0)
        return {b"0": False, b"1": True}.get(asked.output.strip())
    return None


def colour_count() -> int:
    """Return the number of the terminal's colours, 0 also where the user wants none (NO_COLOR)."""
    term = os.environ.get("TERM", "dumb")
    if os.environ.get("NO_COLOR") or term == "dumb":
        return 0
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return 1 << 24
    return 256 if "256color" in term else 16


def over_ssh() -> bool:
    """Return whether the terminal is at the other end of a connection."""
    return bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"))
