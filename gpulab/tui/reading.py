"""Which lessons somebody has opened on this machine, and which were guessed or replayed: a name a
line, in files of the state folder.
"""

from __future__ import annotations

from contextlib import suppress

from gpulab.core.files import read_regular
from gpulab.core.limits import USER_FILE_BYTES
from gpulab.session.run_files import state_folder

_READ, _GUESSED = "lessons-read", "lessons-guessed"


def lessons_read() -> set[str]:
    """Return the names of those that were opened; none where the file cannot be read."""
    return _names_in(_READ)


def keep_read(name: str) -> None:
    """Add a lesson that is not among them yet. Where it cannot be kept, it is not marked later."""
    _add(_READ, name)


def lessons_guessed() -> set[str]:
    """Return the names of those that were guessed or replayed."""
    return _names_in(_GUESSED)


def keep_guessed(name: str) -> None:
    """Add a lesson to those that were guessed or replayed."""
    _add(_GUESSED, name)


def _names_in(file: str) -> set[str]:
    with suppress(OSError, UnicodeError):
        return set(read_regular(state_folder() / file, USER_FILE_BYTES).decode().split())
    return set()


def _add(file: str, name: str) -> None:
    with suppress(OSError):
        state_folder().mkdir(parents=True, exist_ok=True)
        with (state_folder() / file).open("a", encoding="utf-8") as names:
            names.write(f"{name}\n")
