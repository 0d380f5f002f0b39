"""Which lessons somebody has opened on this machine: a name a line, in the state folder."""

from __future__ import annotations

from contextlib import suppress

from gpulab.core.files import read_regular
from gpulab.core.limits import USER_FILE_BYTES
from gpulab.session.run_files import state_folder

_FILE = "lessons-read"


def lessons_read() -> set[str]:
    """Return their names; none where the file cannot be read."""
    with suppress(OSError, UnicodeError):
        return set(read_regular(state_folder() / _FILE, USER_FILE_BYTES).decode().split())
    return set()


def keep_read(name: str) -> None:
    """Add a lesson that is not among them yet. Where it cannot be kept, it is not marked later."""
    with suppress(OSError):
        state_folder().mkdir(parents=True, exist_ok=True)
        with (state_folder() / _FILE).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
