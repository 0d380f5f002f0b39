"""Pipes that are read without waiting, and their descriptors."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, Pipe

from gpulab.core.limits import LINE_BYTES


def pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe, read without blocking; each end is closed with its stack."""
    r, w = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(r, False)
    reader.callback(os.close, r)
    writer.callback(os.close, w)
    return r, w


def read_available(fd: int) -> bytes | None:
    """Return what there is to read now; None if nothing is, empty if the pipe has ended."""
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return None


class Bell:
    """Wakes who waits for `fd`, from a handler of a signal too: it waits for nothing.

    It lives as long as anybody may ring: a number that was given back may be another file by then.
    """

    def __init__(self) -> None:
        self.fd, self._rope = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for descriptor in (self.fd, self._rope):
            weakref.finalize(self, os.close, descriptor).atexit = False

    def ring(self) -> None:
        with suppress(BlockingIOError):  # a pipe that is full says the same
            os.write(self._rope, b".")

    def has_rung(self) -> bool:
        """Return whether it has since this was asked last."""
        with suppress(BlockingIOError):
            return bool(os.read(self.fd, 64))
        return False


class Lines:
    """Cuts what comes in into lines; of one that is longer than the limit only its beginning, which
    is no event.
    """

    def __init__(self) -> None:
        self._partial = b""

    def take(self, data: bytes) -> list[bytes]:
        """The lines that are whole by now, without their newlines."""
        *lines, partial = (self._partial + data).split(b"\n")
        self._partial = partial[: LINE_BYTES + 1]
        return [line[: LINE_BYTES + 1] for line in lines]


def to_high_number(fd: int) -> int:
    """Move a descriptor far from the low numbers that a scenario may close by mistake."""
    import fcntl  # a replay runs on systems without them
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(400, max(0, limit - 8)))
    os.close(fd)
    return high


def connection_pair() -> tuple[Connection, Connection]:
    """Two ends, each of which sends whole messages to the other."""
    return Pipe()
