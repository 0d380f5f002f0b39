"""Files that others wrote are opened here: regular ones only, and no more of them than a limit."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """A regular file, to be read. OSError for anything else: a pipe or a device would block, or never end."""
    _require_regular(path.stat().st_mode, path)  # before it is opened: that alone moves some devices
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _require_regular(os.fstat(fd).st_mode, path)
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The whole of a regular file. OSError where it is none, or is larger than `most_bytes`."""
    with open_regular(path) as file:
        size = min(os.fstat(file.fileno()).st_size, most_bytes)
        data = file.read(size + 1)  # a buffer as large as the limit would take longer than to read most files
        if len(data) > size:
            data += file.read(most_bytes - size)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    return data


def _require_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
