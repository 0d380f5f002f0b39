"""How much of what a thread runs is Python's bytecode, and how much the compiled functions that it calls.

A handler of a signal runs between two bytecodes. One that runs as soon as its timer expires interrupted the
interpreter, one that comes later had to wait for a compiled function to return. Time is the thread's own, so that
others on its CPU change nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from time import perf_counter, thread_time
from types import FrameType

_EVERY_S, _LATE_S = 1e-3, 5e-5
_LONG_S, _MOST_S = 0.1, 2.0
_FEWEST = 20


def interpreted_share(step: Callable[[], object]) -> float | None:
    """Of the time in which some steps run on this thread, the main one; None where too little of it was seen."""
    ran_s = interpreted_s = armed_at = 0.0
    ticks = 0

    def arm() -> None:
        nonlocal armed_at
        armed_at = thread_time()
        signal.setitimer(signal.ITIMER_REAL, _EVERY_S)

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal ran_s, interpreted_s, ticks
        between_s = thread_time() - armed_at
        ran_s += between_s
        interpreted_s += between_s if between_s < _EVERY_S + _LATE_S else 0.0
        ticks += 1
        arm()

    before = signal.signal(signal.SIGALRM, tick)
    signal.siginterrupt(signal.SIGALRM, False)  # a library's system call goes on
    started = perf_counter()
    try:
        arm()
        while perf_counter() - started < _LONG_S or (ticks < _FEWEST and perf_counter() - started < _MOST_S):
            step()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return interpreted_s / ran_s if ran_s > 0 else None
