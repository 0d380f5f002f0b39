"""The compiler's process, from outside: one for all that this process compiles, with limits of time
and memory.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Lock
from typing import TypeVar

import msgspec

from gpulab.core.limits import COMPILE_BYTES, COMPILE_S
from gpulab.features.kernels.nvrtc import Code, Hello, Source, framed

_NVRTC = (sys.executable, "-P", "-m", "gpulab.features.kernels.nvrtc")
_LARGEST_ANSWER = 256 << 20
_Answer = TypeVar("_Answer", Hello, Code)


class CompilerEndedError(Exception):
    """The process ended, or was ended: the message says why."""


class _GoneError(CompilerEndedError):
    """It ended by itself: for want of work, it may be, or together with a thread that started
    it.
    """


class CompilerProcess:
    """It is started when it is needed, and ends when nothing is compiled for a while. Whatever
    interrupts who waits for it ends it.
    """

    def __init__(self, seconds: float = COMPILE_S, memory_bytes: int = COMPILE_BYTES) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._hello = Hello()

    def hello(self) -> Hello:
        """What it says of itself. CompilerEndedError."""
        with self._lock:
            if self._process is None:
                self._start()
            return self._hello

    def compile(self, source: Source) -> Code:
        """CompilerEndedError where it takes too long, too much memory, or its end."""
        with self._lock:
            if self._process is not None:
                with suppress(_GoneError):
                    return self._answer(framed(source), Code)
            self._start()
            return self._answer(framed(source), Code)

    def close(self) -> int | None:
        """End it; its exit code."""
        process = self._process
        self._process = None
        if process is None:
            return None
        process.kill()
        with process:  # closes its pipes
            return process.wait()

    def _start(self) -> None:
        self.close()
        limits = (os.getpid(), max(1, round(self._seconds)), self._memory_bytes)
        self._process = subprocess.Popen(
            [*_NVRTC, *map(str, limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        )
        self._hello = self._answer(b"", Hello)

    def _answer(self, message: bytes, kind: type[_Answer]) -> _Answer:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            while message:
                message = message[self._process.stdin.write(message) or 0 :]
            deadline = time.monotonic() + self._seconds
            length = int.from_bytes(self._read(4, deadline), "big")
            if length > _LARGEST_ANSWER:
                raise CompilerEndedError(f"made more than {_LARGEST_ANSWER >> 20} MiB")
            return msgspec.msgpack.decode(self._read(length, deadline), type=kind)
        except (BrokenPipeError, EOFError):
            code = self.close() or 0
            if code == -signal.SIGXCPU:
                raise CompilerEndedError(self._too_slow()) from None
            end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            gibibytes = self._memory_bytes / (1 << 30)
            raise _GoneError(f"ended with {end}; it may use {gibibytes:g} GiB of memory") from None
        except BaseException:
            self.close()
            raise

    def _read(self, count: int, deadline: float) -> bytes:
        """EOFError, CompilerEndedError."""
        assert self._process is not None
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        data = bytearray()
        while len(data) < count:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise CompilerEndedError(self._too_slow())
            more = os.read(fd, min(count - len(data), 1 << 20))
            if not more:
                raise EOFError
            data += more
        return bytes(data)

    def _too_slow(self) -> str:
        return f"took more than {self._seconds:g} s, and was ended"


_inherited: list[CompilerProcess] = []
"""Of the process that this one was forked from: not to be waited for, nor ended."""
_current = CompilerProcess()
atexit.register(lambda: _current.close())


def compiler_process() -> CompilerProcess:
    """That of this process."""
    return _current


def _in_child() -> None:
    global _current
    _inherited.append(_current)
    _current = CompilerProcess()


os.register_at_fork(after_in_child=_in_child)
