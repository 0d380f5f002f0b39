"""Reads the stacks of other processes, as long as they let it."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from select import select
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import Any

from gpulab.proc.stacks import (
    EVERY_AT,
    FIRST,
    HEAD,
    SIZE,
    SLOT,
    SLOTS,
    SUFFIX,
    WRITTEN,
    WRITTEN_AT,
    Layout,
    Memory,
    Stacks,
)

_NEW_S, _LEAST_S = 0.2, 0.001
"""Between looks for new processes, and at any process."""


class Reader:
    """Reads the stacks of all followed processes of a run, in a thread of gpulab's own process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._over = Event()
        self._processes: dict[str, _Process | None] = {}
        self._thread = Thread(target=self._run, name="stacks", daemon=True)

    @property
    def reads(self) -> bool:
        """Whether there is a process that lets its stack be read."""
        return bool(self._processes)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        for process in self._processes.values():
            if process is not None:
                process.close()

    def _run(self) -> None:
        listed = 0.0
        due = 0.0
        while not self._over.wait(max(0.001, due - perf_counter())):
            now = perf_counter()
            if now - listed > _NEW_S:
                listed = now
                self._list()
            for name, process in self._processes.items():
                if process is not None and not process.look(now):
                    process.close()
                    self._processes[name] = None
            running = [process.due for process in self._processes.values() if process is not None]
            due = min([listed + _NEW_S, *running])

    def _list(self) -> None:
        with suppress(OSError):
            for path in self._folder.glob(f"*{SUFFIX}"):
                if path.name not in self._processes and (process := _Process.opened(path)):
                    self._processes[path.name] = process


class _Process:
    """One that lets its stack be read."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        pid, _, self._state, _, *layout = HEAD.unpack_from(memory, 0)
        self._layout = Layout(*layout)
        self._process = Memory(pid)
        self.due = 0.0

    @classmethod
    def opened(cls, path: Path) -> _Process | None:
        from mmap import mmap

        with suppress(OSError, ValueError, AttributeError), path.open("r+b") as file:
            memory = mmap(file.fileno(), SIZE)
            if HEAD.unpack_from(memory, 0)[0]:
                return cls(memory)
            memory.close()
        return None

    def look(self, now: float) -> bool:
        """Write its stack where it is time to; return whether the process can still be read."""
        if now < self.due:
            return True
        (every_s,) = struct.unpack_from("d", self._memory, EVERY_AT)
        self.due = now + (min(max(every_s, _LEAST_S), 1.0) if every_s else _NEW_S)
        if not every_s:
            return True
        try:
            stack = self._process.stack(self._state, self._layout)
        except OSError:  # or the process has ended
            return Path(f"/proc/{self._process.pid}").exists()
        (written,) = WRITTEN.unpack_from(self._memory, WRITTEN_AT)
        at = FIRST + written % SLOTS * SLOT
        words = [word for frame in stack for word in frame]
        struct.pack_into("Q" + "Qq" * len(stack), self._memory, at, len(stack), *words)
        WRITTEN.pack_into(self._memory, WRITTEN_AT, written + 1)
        return True

    def close(self) -> None:
        self._memory.close()


@contextmanager
def read_from_outside() -> Iterator[Stacks | None]:
    """Have the stack of this thread read by a process of its own meanwhile; None where that cannot
    be.
    """
    with TemporaryDirectory(prefix="gpulab-") as folder, ExitStack() as stack:
        stacks = None
        with suppress(Exception):
            stacks = _read(folder, stack)
        yield stacks


def _read(folder: str, stack: ExitStack) -> Stacks | None:
    libc = ctypes.CDLL(None, use_errno=True)
    stacks = Stacks(folder)
    stacks.begin(libc)
    stacks.look_each(_LEAST_S)
    command = [sys.executable, "-P", "-m", __name__, folder]
    child = stack.enter_context(Popen(command, stdin=PIPE, stdout=PIPE))
    stack.callback(child.kill)
    # PR_SET_PTRACER: it may read the memory of this process, though it is no parent of it
    libc.prctl(0x59616D61, child.pid, 0, 0, 0)
    is_ready = select([child.stdout.fileno()], [], [], 2.0)[0]  # type: ignore[union-attr]
    return stacks if is_ready else None


def _read_until_the_end(folder: str) -> None:
    """Say when it has begun to read; the end of stdin is that of the process that is read."""
    reader = Reader(Path(folder))
    reader.start()
    has_ended = False
    while not (reader.reads or has_ended):
        has_ended = bool(select([0], [], [], _LEAST_S)[0])
    if not has_ended:
        os.write(1, b".")
        os.read(0, 1)
    reader.stop()


if __name__ == "__main__":
    _read_until_the_end(sys.argv[1])
