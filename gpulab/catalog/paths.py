"""Paths that somebody names, looked at without an error: what cannot be looked at is not there."""

from __future__ import annotations

import os
from pathlib import Path

from gpulab.protocol.text import plain


def real_path(path: Path) -> Path:
    """The path from the root, without links. Itself where there is none: in a folder that was deleted."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


def is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or in a folder that may not be read
        return False


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def python_files(folder: Path) -> list[Path]:
    """The Python files of a folder, sorted; none where it cannot be read."""
    try:
        return sorted(folder.glob("*.py"))
    except OSError:
        return []


def expanded(path: Path) -> Path:
    """The path with the home folder for its ~; itself where there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def shown_path(path: Path | str) -> str:
    """A path as a line of valid text: whatever is no character in it stands as its code."""
    return " ".join(plain(str(path).encode(errors="backslashreplace").decode()).splitlines())
