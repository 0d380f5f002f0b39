"""Files of others are read, regular ones only and to a limit; files of results are written as a
whole or not at all.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # run files are read where no run can be made, too
    fcntl = None  # type: ignore[assignment]

PACKED = ".xz"
"""Ending of the name of a run file that was compressed after its run."""
MODE = 0o644
"""Of a new run file, less what the umask takes."""
_NEVER_BLOCKS = getattr(os, "O_NONBLOCK", 0)  # not every system has it
_IRREPLACEABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}
"""What the system says of a file in a folder that cannot be changed, of a mount point, and of a
file of another.
"""
_MOST_DEEP = 100
"""Folders below one whose files are looked for."""
PICTURES = (".png", ".svg", ".pdf")
"""Endings of the pictures that are written."""


def open_regular(path: Path) -> BinaryIO:
    """A regular file, to be read. OSError for anything else: a pipe or a device would block, or
    never end.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The whole of a regular file. OSError where it is none, or is larger than `most_bytes`."""
    with open_regular(path) as file:
        size = min(os.fstat(file.fileno()).st_size, most_bytes)
        # a buffer as large as the limit would take longer than to read most files
        data = file.read(size + 1)
        if len(data) > size:
            data += file.read(most_bytes - size)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    return data


def files_below(folder: Path, passed_over: list[OSError]) -> Iterator[Path]:
    """The files of a folder and of those below it, in the order of their names, but for hidden ones
    and links to folders. OSError where the folder cannot be listed; one below it that cannot, or
    lies too deep, is `passed_over`.
    """
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if path != folder and (path.is_symlink() or not path.is_dir()):
            yield path
            continue
        try:
            if len(path.parts) - len(folder.parts) > _MOST_DEEP:
                raise OSError(errno.ELOOP, f"more than {_MOST_DEEP} folders deep", str(path))
            inner = sorted(path.iterdir(), reverse=True)
        except OSError as error:
            if path == folder:
                raise
            passed_over.append(error)
            continue
        waiting += [each for each in inner if not each.name.startswith(".")]


def hold(fd: int) -> None:
    """Lock the file for as long as it is open here: the system takes the lock back from a process
    however it dies.
    """
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(fd: int) -> bool | None:
    """Return whether a process holds the file that is open here; None where locks do not tell."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file, which keeps its permissions: whenever the process is killed, the old one or
    the new is there.

    Devices, pipes and what the path of a descriptor (/dev/stdout) leads to are written to, files at
    their end. A file that can be written but not replaced is overwritten. OSError where nothing of
    that is possible.
    """
    if is_appended_to(path):
        _write(path, data, os.O_APPEND)
        return
    real = Path(os.path.realpath(path))  # of a link what it stands for is replaced
    try:
        _replace(real, data)
    except OSError as error:
        if error.errno not in _IRREPLACEABLE or not real.exists():
            raise
        _write(real, data, os.O_TRUNC)


def is_appended_to(path: Path) -> bool:
    """Return whether `write_whole` writes to what is there, and replaces nothing."""
    return path.exists() and (not path.is_file() or _is_descriptor(path))


def check_writable(path: Path) -> None:
    """OSError where `write_whole` could not write there now. What is there stays as it is, and no
    folder is made: a name that was mistyped would leave one.
    """
    if not path.exists():
        partial = _partial_path(Path(os.path.realpath(path)))
        with partial.open("xb"):
            partial.unlink()
    elif not path.is_fifo():
        os.close(os.open(path, os.O_WRONLY | _NEVER_BLOCKS))
    # to open a pipe and to close it again is its end for whoever reads it
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _replace(path: Path, data: bytes) -> None:
    partial = _partial_path(path)
    try:
        with partial.open("xb") as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(data)
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # nobody asked for the other
        raise


def _write(path: Path, data: bytes, how: int) -> None:
    fd = os.open(path, os.O_WRONLY | how | _NEVER_BLOCKS)  # a pipe that nobody reads is an error
    os.set_blocking(fd, True)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def _partial_path(path: Path) -> Path:
    return path.with_name(f".gpulab-{os.urandom(4).hex()}.partial")


def _is_descriptor(path: Path) -> bool:
    """Return whether the path, or a link that it is, leads through the open files of a process."""
    while not (found := os.path.realpath(path.parent).startswith("/proc/")) and path.is_symlink():
        path = path.parent / path.readlink()
    return found
