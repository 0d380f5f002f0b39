"""A scenario's file in the user's editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from textual.app import App, SuspendNotSupported

_EDITORS = ("vi", "nano")
"""Tried where neither $VISUAL nor $EDITOR names one."""


def edit(app: App[int], path: Path, line: int | None) -> str | None:
    """Open the file in the editor, at a line where one is known, and come back; the problem where
    that cannot be.
    """
    command = _editor()
    if command is None:
        return "no editor: set EDITOR, for instance EDITOR=nano"
    at = [f"+{line}"] if line else []
    try:
        with app.suspend():
            subprocess.run([*command, *at, str(path)], check=False)
    except SuspendNotSupported:
        return "an editor cannot be opened from here: the screen is not on a terminal"
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    return None


def _editor() -> list[str] | None:
    for name in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(os.environ.get(name, "")):
                return words
        except ValueError:  # a quote without its end
            continue
    return next(([name] for name in _EDITORS if shutil.which(name)), None)
