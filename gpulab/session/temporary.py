"""Temporary folders of runs. What SIGKILL leaves behind, a later command removes: each folder is
locked for as long as its process lives, whatever ends that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time

from gpulab.core.files import hold, is_held

_PREFIX = "gpulab-held-"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """One that is removed at the end, as far as that is possible."""
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        folder = os.open(name, os.O_RDONLY)
        try:
            hold(folder)
            yield Path(name)
        finally:
            os.close(folder)


def _sweep(place: Path) -> None:
    """Remove our own that nobody holds."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                _remove_if_left(Path(entry.path), entry.stat(follow_symlinks=False))


def _remove_if_left(path: Path, status: os.stat_result) -> None:
    # a younger one may be about to be locked
    if status.st_uid != os.getuid() or time() - status.st_mtime < 3600.0:
        return
    try:
        folder = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if is_held(folder) is False:
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)
