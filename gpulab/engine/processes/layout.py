"""Random addresses for libraries, stack and heap of a fork, which inherits those of its parent.

The kernel randomises addresses once per program, so forks share every conflict in caches and branch
predictors: two runs of the same pair of short operations differed by up to 7 %, each with an
interval of 0.5 % over its processes.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
from collections.abc import Callable

_STACK_ALIGNMENT = 16
_SEEDS = 2**31
_gaps: list[mmap.mmap] = []


def seed_of(pinned: int | None, process: int) -> int:
    """The seed of one process, for its data, order, padding and layout: fresh entropy, or derived
    from a pinned seed.
    """
    if pinned is None:
        return int.from_bytes(os.urandom(4)) % _SEEDS
    return (pinned + process * 1_000_003) % _SEEDS if process else pinned


def move_libraries(draw: random.Random) -> None:
    """Load libraries from now on at other addresses than other forks of this process."""
    pages = draw.randrange(1, 1 << 16)
    _gaps.append(mmap.mmap(-1, pages * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0))
    _allocate(draw)


def in_own_layout(draw: random.Random, serve: Callable[[], None]) -> None:
    """Serve with a heap and a stack that begin at random addresses."""
    _allocate(draw)
    # addresses that differ by a page fall into the same sets of a first-level cache
    _lower_on_stack(draw.randrange(_STACK_ALIGNMENT, 4096, _STACK_ALIGNMENT), serve)


def _allocate(draw: random.Random) -> None:
    """Take memory for as long as the process lives."""
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(
        ("PyObject_Malloc", ctypes.pythonapi)
    )
    for _ in range(draw.randrange(10_000)):
        # at most 4 KiB: the interpreter has pools for each small size
        allocate(int(2 ** draw.uniform(0.0, 12.0)))


def _lower_on_stack(room: int, serve: Callable[[], None]) -> None:
    """Serve `room` bytes further down the stack: below an argument of that size, which C passes by
    value.
    """
    raised: list[BaseException] = []

    def call(_: ctypes.Structure) -> None:
        try:
            serve()
        except BaseException as error:  # a callback could not pass it on
            raised.append(error)

    argument = type("Room", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_char * room)]})
    try:
        function = ctypes.CFUNCTYPE(None, argument)(call)
    except MemoryError:  # a hardened kernel maps no memory for callbacks
        serve()
        return
    function(argument())
    if raised:
        raise raised[0]
