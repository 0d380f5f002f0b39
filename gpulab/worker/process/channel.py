"""The worker's end of the event pipe.

A pipe holds 64 KiB by default, and a full one blocks its writer inside the measurement. So writes never block while
something is timed: what the pipe does not take waits here and leaves between blocks.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import select
import struct
import sys
from contextlib import suppress
from typing import NoReturn

from gpulab.protocol.events import PIPE_LOST, Event
from gpulab.protocol.frames import numbered, signed

_HIGH_FD, _ABOVE = 400, 8
_COUNT = struct.Struct("<Q")
_ROOM = 1 << 20
_MOST_WAITING = 64 << 20


class Channel:
    """Ordered, lossless, non-blocking: `emit` queues and writes what fits, `flush` waits until all is gone."""

    def __init__(self, fd: int) -> None:
        self._fd = to_high_number(fd)
        os.set_blocking(self._fd, False)
        with suppress(OSError):  # the user's pipe quota is spent: the default size works, with more waiting
            fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _ROOM)
        self._identity = _identity(self._fd)
        self._waiting = bytearray()
        self._sent = mmap.mmap(-1, _COUNT.size)
        self._secret: bytes | None = None
        self.most_waiting = 0
        """The most bytes that ever waited for the reader."""
        self.adopt()

    def adopt(self) -> None:
        """Make the calling process the one that writes; a fork of it closes the pipe and never writes."""
        self._pid = os.getpid()

    @property
    def sent(self) -> int:
        """Events so far, in memory that the worker shares with its supervisor: whoever forges more is found out."""
        return int(_COUNT.unpack_from(self._sent)[0])

    def sign(self, secret: bytes) -> None:
        """Send as the supervisor from now on."""
        self._secret = secret

    def forked(self) -> None:
        with suppress(OSError):
            os.close(self._fd)
        self._sent = mmap.mmap(-1, _COUNT.size)

    def emit(self, *events: Event) -> None:
        if os.getpid() != self._pid:
            os._exit(PIPE_LOST)  # a child forked by the scenario came back into the lab's own code
        for event in events:
            self._waiting += numbered(self.sent, event) if self._secret is None else signed(self._secret, event)
            _COUNT.pack_into(self._sent, 0, self.sent + 1)
        self.pump()
        self.most_waiting = max(self.most_waiting, len(self._waiting))
        if len(self._waiting) > _MOST_WAITING:
            self.flush()

    def pump(self) -> None:
        """Write what the pipe takes now."""
        while self._waiting:
            if _identity(self._fd) != self._identity:
                _give_up("the scenario closed or replaced the lab's event pipe")
            try:
                with memoryview(self._waiting) as view:
                    written = os.write(self._fd, view[:_ROOM])
                del self._waiting[:written]
            except BlockingIOError:
                return
            except BrokenPipeError:
                os._exit(PIPE_LOST)

    def flush(self) -> None:
        """Write everything, waiting for the reader."""
        self.pump()
        while self._waiting:
            select.select([], [self._fd], [])
            self.pump()


def to_high_number(fd: int) -> int:
    """Move a descriptor far from the low numbers that a scenario may close or write to by mistake."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(_HIGH_FD, max(0, limit - _ABOVE)))
    os.close(fd)
    return high


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _give_up(message: str) -> NoReturn:
    try:
        print(f"gpulab: {message}", file=sys.stderr, flush=True)
    finally:
        os._exit(PIPE_LOST)
