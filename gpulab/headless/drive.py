"""Drives one live run to its end; the mode that it serves looks in at every tick."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

from gpulab.session.run import Run
from gpulab.session.source import Live

TICK_S = 0.25


def drive(live: Live, required_speedup: float | None, watchers: Sequence[Callable[[Run], None]] = ()) -> Run:
    """The run, once it has ended. SIGINT and SIGTERM stop it; what was measured stays."""
    run = Run(live, required_speedup)
    # Handlers, since an exception between two events would lose what was taken.
    before = {which: signal.signal(which, lambda *_: live.cancel()) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not run.ended:
            live.wait(TICK_S)
            run.poll()
            for watch in watchers:
                watch(run)
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
        if not run.ended:
            live.cancel()
            live.wait()
    return run
