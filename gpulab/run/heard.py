"""What comes from one worker: the pipes it writes to, and what it said of itself."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass

from gpulab.model.events import AnyEvent, Noticed, WorkerDone, WorkerExited

_CHUNK = 1 << 18


@dataclass
class Heard:
    """The last words of a worker and of its warden, and how many events came."""

    exit: WorkerExited | None = None
    done: WorkerDone | None = None
    came: int = 0
    garbled: int = 0

    @property
    def well(self) -> bool:
        """Whether it did all it was asked to, and every event of it came."""
        return self.done is not None and self.done.sent == self.came

    def notices(self) -> list[AnyEvent]:
        """What the reader of the result must know of how it went."""
        found: list[AnyEvent] = []
        if self.exit and self.exit.orphans:
            found.append(Noticed(text=f"the scenario left {self.exit.orphans} processes behind; they were stopped"))
        if self.garbled > (self.done is None):  # a worker that was killed may leave half a line
            found.append(Noticed(text=f"{self.garbled} lines of the event pipe were not the lab's and were skipped"))
        return found


def pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe, read here without blocking; each end is closed with its stack."""
    r, w = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(r, False)
    reader.callback(os.close, r)
    writer.callback(os.close, w)
    return r, w


def read_some(fd: int) -> bytes:
    """What there is to read now."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""
