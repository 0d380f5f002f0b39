"""Parts of a step, which are timed or made longer: of a step of the lab, and of a followed program.

Standard library only, for Python 3.9 and later, and torch where the program imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from mmap import mmap
from threading import get_ident
from time import perf_counter, sleep, thread_time
from typing import Any
from zlib import crc32

_LEAST_DELAY_S = 20e-6
"""Shorter ones are saved up."""
_BUSY = bytes(16_384)
SLOTS, _FIELDS = 64, 4
PASSES, WALL, RAN, DELAYED = range(_FIELDS)
_CYCLES = 20_000_000


class Part:
    """A part of a step, which is timed, and may be made longer. What workers of a loader
    do is seen in memory that they share, a slot each.
    """

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self._shared = shared(SLOTS * _FIELDS + 2)
        self._inside: dict[int, tuple[float, float]] = {}
        self._debt = self._window = 0.0

    def around(self, function: Any) -> Any:
        part = self

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if get_ident() in part._inside or is_compiling():
                return function(*args, **kwargs)
            part.enter()
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                part.leave()

        return called

    def enter(self) -> None:
        self._inside[get_ident()] = perf_counter(), thread_time()

    def leave(self) -> None:
        begun_s, ran_s = self._inside.pop(get_ident(), (0.0, 0.0))
        if not begun_s:
            return
        self.threads.add(get_ident())
        first = slot() * _FIELDS
        # a step may end within a part: what comes between two windows is in none of them
        self._shared[first + PASSES] += 1
        self._shared[first + WALL] += perf_counter() - max(begun_s, self._window)
        self._shared[first + RAN] += thread_time() - ran_s
        self._lengthen(self._shared[-2])

    def _lengthen(self, delay_s: float) -> None:
        """Pause after one pass."""
        if not delay_s:
            self._debt = 0.0
            return
        self._debt += delay_s
        if self._debt < _LEAST_DELAY_S:
            return
        started = perf_counter()
        (_spin if self._shared[-1] else sleep)(self._debt)
        took_s = perf_counter() - started
        self._debt -= took_s
        self._shared[slot() * _FIELDS + DELAYED] += took_s

    def be_longer(self, seconds: float, *, busy: bool) -> None:
        """From now on, by these seconds of each pass, in which it computes or sleeps."""
        self._shared[-2], self._shared[-1] = seconds, float(busy)

    def window_begins(self) -> None:
        self._window = perf_counter()
        for place in range(SLOTS * _FIELDS):
            self._shared[place] = 0.0

    def sum(self, field: int, first: int = 0) -> float:
        """Of all processes, or of workers alone: from slot 1."""
        places = range(first * _FIELDS + field, SLOTS * _FIELDS, _FIELDS)
        return float(sum(self._shared[place] for place in places))


def wrap(owner: Any, name: str, wrapper: Callable[[Any], Any]) -> Callable[[], None]:
    """Put what `wrapper` makes of a function in its place; what puts it back."""
    before, is_own = getattr(owner, name), name in vars(owner)
    wrapped = wrapper(before)
    setattr(owner, name, wrapped)

    def undo() -> None:
        if vars(owner).get(name) is not wrapped:
            return  # somebody has wrapped it again
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return undo


def shared(count: int) -> Any:
    """Numbers that processes share, which are forked later."""
    return memoryview(mmap(-1, 8 * count)).cast("d")


def slot() -> int:
    """That of a worker of a loader, or 0 of any other process."""
    data = sys.modules.get("torch.utils.data._utils.worker")
    info = data.get_worker_info() if data is not None else None
    return 0 if info is None else 1 + info.id % (SLOTS - 1)


def _spin(seconds: float) -> None:
    """Compute so long, mostly without the lock of the interpreter, which others may need."""
    end = perf_counter() + seconds
    while perf_counter() < end - _LEAST_DELAY_S:
        crc32(_BUSY)
    while perf_counter() < end:
        pass


def cycles_per_s() -> float:
    """Measure the cycles per second of `torch.cuda._sleep`."""
    for _ in range(2):  # the first loads the kernel
        synchronise()
        begun = perf_counter()
        sys.modules["torch"].cuda._sleep(_CYCLES)
        synchronise()
    return _CYCLES / (perf_counter() - begun)


def is_compiling() -> bool:
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return compiler is not None and bool(compiler.is_compiling())


def synchronise() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
