"""Runs one request to its end and returns its state; the face it serves looks in at every tick."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import gpulab
from gpulab.model.request import RunRequest
from gpulab.model.state import RunState, fold
from gpulab.run.record import RunFile
from gpulab.run.request import UsageError
from gpulab.run.session import Session

TICK_S = 0.25


def run_file(path: Path) -> RunFile:
    """A new run file. UsageError where it cannot be made."""
    try:
        return RunFile(path, gpulab.__version__)
    except OSError as error:
        raise UsageError(f"no run file can be made at {path}: {error.strerror}; choose another with --output") from None


def measure(
    request: RunRequest,
    file: RunFile,
    show: Callable[[RunState], None] | None = None,
    steer: Callable[[Session, RunState], None] | None = None,
) -> RunState:
    """Run in a background process, folding its events at each tick. SIGINT and SIGTERM stop it; the state stays."""
    session = Session(request, file)
    state = RunState()
    # Handlers, since an exception between two events would lose what was drained.
    before = {which: signal.signal(which, lambda *_: session.cancel()) for which in (signal.SIGINT, signal.SIGTERM)}
    session.start()
    try:
        ended = False
        while not ended:
            ended = session.wait(TICK_S)
            for event in session.drain():
                state = fold(state, event)
            if show:
                show(state)
            if steer:
                steer(session, state)
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
        if not session.ended:
            session.cancel()
            session.wait()
    return state
