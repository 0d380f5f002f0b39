"""Drives one live run to its end, for everything that waits for it; signals that ask it to stop are
noted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulab.session.live import LiveSource
    from gpulab.session.run import Run

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class StoppedError(Exception):
    """The user stopped it."""


class Interrupts:
    """While it is entered, a signal calls what was passed to `stop_with`, now or as soon as that is
    known.

    A handler may come in the middle of anything, another handler too: it must wait for no lock, so
    what it calls must do no more than wake somebody. Signals that are ignored, as under nohup, and
    handlers of others stay as they are; outside the main thread, where Python takes no handlers,
    all of them.

    `patience_s`, whole seconds: when they have passed since the first signal and this has not been
    left, the process ends by SIGALRM. So it does not hang on, whatever the main thread waits for: a
    terminal that takes no output. The end of a run takes less, whose supervisor has ten seconds for
    its last word.
    """

    def __init__(
        self, signals: Sequence[signal.Signals] = SIGNALS, patience_s: int | None = 30
    ) -> None:
        self.received: int | None = None
        """The last signal that came."""
        self._pending: int | None = None
        self._signals, self._patience_s = signals, patience_s
        self._before: dict[signal.Signals, Any] = {}
        self._stop: Callable[[], object] | None = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            defaults = (signal.SIG_DFL, signal.default_int_handler)
            for which in self._signals:
                if (handler := signal.getsignal(which)) in defaults:
                    self._before[which] = handler
                    signal.signal(which, self._take)
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def stop_with(self, stop: Callable[[], object]) -> None:
        """Call this, from a handler, at every signal; and at once where one has come."""
        self._stop = stop
        if self.received is not None:
            stop()

    def end(self, *, answered: bool = False) -> None:
        """Put the handlers back. A signal that was not `answered` meanwhile is raised again."""
        while self._before:
            which, handler = self._before.popitem()
            signal.signal(which, handler)
        if self.received is not None and self._patience_s:
            signal.alarm(0)
        pending, self._pending = self._pending, None
        if pending is not None and not answered:
            signal.raise_signal(pending)

    def _take(self, which: int, _: object) -> None:
        if self.received is None and self._patience_s:
            signal.alarm(self._patience_s)
        self.received = self._pending = which
        if self._stop is not None:
            self._stop()


TICK_S = 0.25


def drive_to_end(live: LiveSource, watchers: Sequence[Callable[[Run], None]] = ()) -> Run:
    """The run, once it has ended. After every poll `watchers` are called with it.

    Whatever is raised before, a KeyboardInterrupt too, passes on after the run was cancelled and
    has ended.
    """
    from gpulab.session.run import Run  # which whoever only notes signals does without

    run = Run(live)
    try:
        while not run.ended:
            live.wait(TICK_S)
            run.poll()
            for watch in watchers:
                watch(run)
    finally:
        if not live.wait(0):
            live.cancel()
            live.wait()
    return run
