"""Pipes that are read without waiting, and the streams of events that come out of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from gpulab.limits import LINE_BYTES
from gpulab.protocol.events import AnyEvent

_CHUNK = 1 << 18


@dataclass(frozen=True)
class Stream:
    """`take` gives the events that can be read from `fd` now, and whether more may come."""

    fd: int
    take: Callable[[], tuple[list[AnyEvent], bool]]


def pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe, read without blocking; each end is closed with its stack."""
    r, w = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(r, False)
    reader.callback(os.close, r)
    writer.callback(os.close, w)
    return r, w


def read_available(fd: int) -> bytes | None:
    """What there is to read now; None where there is nothing, empty where the pipe has ended."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None


class Lines:
    """Cuts what comes in into lines; of one that is longer than the limit only its beginning, which is no event."""

    def __init__(self) -> None:
        self._partial = b""

    def take(self, data: bytes) -> list[bytes]:
        """The lines that are whole by now, without their newlines."""
        *lines, partial = (self._partial + data).split(b"\n")
        self._partial = partial[: LINE_BYTES + 1]
        return [line[: LINE_BYTES + 1] for line in lines]
