"""Where run files go when nobody says where: a new name under the user's state directory."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from gpulab.core.text import file_name


def state_folder() -> Path:
    """Where run files and the store of what they leave for later ones are kept."""
    from platformdirs import user_state_path

    return user_state_path("gpulab")


def config_folder() -> Path:
    """Where what the user wrote for gpulab lies."""
    from platformdirs import user_config_path

    return user_config_path("gpulab")


def default_path(scenario: str, folder: Path | None = None) -> Path:
    """A new file, named by time, scenario and process, in a folder that is shared if one is."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return (folder or runs_folder()) / f"{now}-{file_name(scenario)}-{os.getpid()}.jsonl"


def runs_folder() -> Path:
    """Of run files that nobody named: sorted by name they are sorted by time."""
    return state_folder() / "runs"


def run_file_names() -> list[str]:
    """Of all in that folder, the newest first; none where it is not there, or cannot be read."""
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(runs_folder())]
        return sorted((name for name in names if name.endswith(".jsonl")), reverse=True)
    return []


def at_home(path: Path) -> str:
    """How a path is shown: below the home folder as ~/..."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (RuntimeError, ValueError):  # there is no home folder, or it lies elsewhere
        return str(path)
