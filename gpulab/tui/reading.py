"""Which lessons somebody has opened on this machine, and which were guessed or replayed: a name a
line, in files of the state folder.
"""

from __future__ import annotations

from contextlib import suppress

from gpulab.core.files import read_regular
from gpulab.core.limits import USER_FILE_BYTES
from gpulab.session.run_files import state_folder

READ, GUESSED = "lessons-read", "lessons-guessed"
"""The file of those that were opened, and of those that were guessed or replayed."""


def lessons(file: str) -> set[str]:
    """Return the names in one of the files; none where it cannot be read."""
    with suppress(OSError, UnicodeError):
        return set(read_regular(state_folder() / file, USER_FILE_BYTES).decode().split())
    return set()


def keep(file: str, name: str) -> None:
    """Add a lesson that is not in it yet. Where it cannot be kept, it is not marked later."""
    with suppress(OSError):
        state_folder().mkdir(parents=True, exist_ok=True)
        with (state_folder() / file).open("a", encoding="utf-8") as names:
            names.write(f"{name}\n")
