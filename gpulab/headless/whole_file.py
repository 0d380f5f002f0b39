"""Files of results, which are there as a whole or not at all, whenever the process is killed."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def check_writable(path: Path) -> None:
    """OSError where `write_whole` could not write there now. What is there stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path = Path(os.path.realpath(path))  # of a link what it stands for is replaced
    if path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    if not _is_special(path):
        beside = _beside(path)
        with beside.open("xb"):
            beside.unlink()


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file, which keeps its permissions; what is none, such as a device or a pipe, is written to."""
    path = Path(os.path.realpath(path))
    if _is_special(path):
        path.write_bytes(data)
        return
    beside = _beside(path)
    try:
        with beside.open("xb") as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(data)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _beside(path: Path) -> Path:
    return path.with_name(f".gpulab-{os.getpid()}.partial")
