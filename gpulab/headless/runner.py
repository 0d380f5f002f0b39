"""Runs one request to its end and returns its state; the face it serves looks in at every tick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gpulab
from gpulab.model.events import RunRequest
from gpulab.model.state import RunState, fold
from gpulab.run.record import RunFile
from gpulab.run.session import Session

TICK_S = 0.25


def measure(request: RunRequest, path: Path, show: Callable[[RunState], None] | None = None) -> RunState:
    """Run in a background process, folding its events at each tick. Ctrl-C stops the worker; the state stays.

    OSError where the run file cannot be made.
    """
    session = Session(request, RunFile(path, gpulab.__version__))
    state = RunState()
    session.start()
    while True:
        try:
            ended = session.wait(TICK_S)
            for event in session.drain():
                state = fold(state, event)
            if show:
                show(state)
            if ended:
                return state
        except KeyboardInterrupt:
            session.cancel()
