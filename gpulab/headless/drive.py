"""Drives one live run to its end while SIGINT and SIGTERM only stop it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

from gpulab.protocol.events import AnyEvent
from gpulab.session.drive import drive_to_end
from gpulab.session.run import Run
from gpulab.session.source import Live


def drive(
    live: Live,
    required_speedup: float | None,
    watchers: Sequence[Callable[[Run], None]] = (),
    listeners: Sequence[Callable[[Sequence[AnyEvent]], None]] = (),
) -> Run:
    """As `drive_to_end`, while SIGINT and SIGTERM stop the run; what was measured stays."""
    # Handlers, since an exception between two events would lose what was taken.
    before = {which: signal.signal(which, lambda *_: live.cancel()) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        return drive_to_end(live, required_speedup, watchers, listeners)
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
