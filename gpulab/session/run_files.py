"""Where run files go when nobody says where: a new name under the user's state directory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from stat import S_ISDIR

from gpulab.commit import version
from gpulab.core.run_file import RunFile
from gpulab.core.text import file_name


def state_folder() -> Path:
    """Return the folder of run files and of the store; a temporary one of a user without home."""
    from platformdirs import user_state_path

    return _user_folder(user_state_path)


def config_folder() -> Path:
    """Return the folder of what the user wrote for gpulab."""
    from platformdirs import user_config_path

    return _user_folder(user_config_path)


def _user_folder(place: Callable[[str], Path]) -> Path:
    try:
        folder = place("gpulab")
    except RuntimeError:  # HOME is not set, and the user's number has no name
        return temporary_folder()
    return folder if folder.is_absolute() else temporary_folder()


@cache
def temporary_folder() -> Path:
    """Return this user's temporary folder; where somebody else made one of its name, a new one."""
    folder = Path(tempfile.gettempdir()) / f"gpulab-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
        if S_ISDIR(about.st_mode) and about.st_uid == os.getuid():
            return folder
    return Path(tempfile.mkdtemp(prefix="gpulab-"))


def new_run_file(path: Path) -> RunFile:
    """A run file at `path`; one that nobody named goes to a temporary folder where there can be
    none. OSError.
    """
    try:
        return RunFile(path, version())
    except OSError:
        if path.parent != runs_folder():
            raise
        return RunFile(temporary_folder() / "runs" / path.name, version())


def kept_elsewhere(path: Path) -> str:
    """Return a remark on a run file that is not where such files are; empty where it is."""
    if path.parent != temporary_folder() / "runs":
        return ""
    reason = "no home folder is known"
    if runs_folder() != path.parent:
        reason = f"{at_home(runs_folder())} cannot be written"
    return f"{reason}: the run is kept in {path.parent} (XDG_STATE_HOME names another place)"


def default_path(scenario: str, folder: Path | None = None) -> Path:
    """A new file, named by time, scenario and process, in a folder that is shared if one is."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return (folder or runs_folder()) / f"{now}-{file_name(scenario)}-{os.getpid()}.jsonl"


def runs_folder() -> Path:
    """Return the folder of run files that nobody named: sorted by name they are sorted by time."""
    return state_folder() / "runs"


def run_file_names() -> list[str]:
    """Return the names of that folder's run files, newest first; none if it cannot be read."""
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(runs_folder())]
        return sorted((name for name in names if name.endswith(".jsonl")), reverse=True)
    return []


def at_home(path: Path) -> str:
    """Return a path as it is shown: below the home folder as ~/..."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (RuntimeError, ValueError):  # there is no home folder, or it lies elsewhere
        return str(path)
