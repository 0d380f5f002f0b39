"""Drives one live run to its end, for everything that waits for it: the command line, scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpulab.protocol.events import AnyEvent
from gpulab.session.run import Run
from gpulab.session.source import Live

TICK_S = 0.25


def drive_to_end(
    live: Live,
    required_speedup: float | None = None,
    watchers: Sequence[Callable[[Run], None]] = (),
    listeners: Sequence[Callable[[Sequence[AnyEvent]], None]] = (),
) -> Run:
    """The run, once it has ended. After every poll `listeners` are called with its events, `watchers` with the run.

    Whatever is raised before, a KeyboardInterrupt too, passes on after the run was cancelled and has ended.
    """
    run = Run(live, required_speedup)
    try:
        while not run.ended:
            live.wait(TICK_S)
            events = run.poll()
            for listen in listeners:
                listen(events)
            for watch in watchers:
                watch(run)
    finally:
        if not live.wait(0):
            live.cancel()
            live.wait()
    return run
