"""One run of the screen: its session, and the state folded from what came so far."""

from __future__ import annotations

import gpulab
from gpulab.model.request import RunRequest
from gpulab.model.state import RunState, fold
from gpulab.run.record import RunFile, default_path
from gpulab.run.session import Session


class LiveRun:
    """Starts with its making; OSError where no run file can be made."""

    def __init__(self, name: str, request: RunRequest) -> None:
        self.name = name
        self.path = default_path(name)
        self.state = RunState()
        self.stopping = False
        self.drained = False
        """Whether the last event is in the state."""
        self._session = Session(request, RunFile(self.path, gpulab.__version__))
        self._session.start()

    def poll(self) -> None:
        """Take in what came since the last tick."""
        ended = self._session.ended  # before draining: what comes later is for the next tick
        for event in self._session.drain():
            self.state = fold(self.state, event)
        self.drained = ended

    def stop(self) -> None:
        """Stop it; what was measured stays."""
        self.stopping = True
        self._session.cancel()

    def wait(self) -> None:
        """Stop it, and wait until nothing of it is left."""
        self.stop()
        self._session.wait()
        self.poll()
