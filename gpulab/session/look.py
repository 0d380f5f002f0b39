"""A question about one step of a user's code, answered in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from time import monotonic
from typing import TypeVar

import msgspec

from gpulab.core.events import Event, Log, Looked
from gpulab.core.jobs import Look as LookJob
from gpulab.proc.pipes import Bell
from gpulab.session.drive import StoppedError
from gpulab.session.streams import CapturedOutput, Streams
from gpulab.session.transcript import WorkerTranscript
from gpulab.session.worker_process import WORKER, WorkerProcess

_LONGEST_S = 300.0

Answer = TypeVar("Answer")


class LookError(Exception):
    """There is no answer; why."""


class Look:
    """Asks once; `cancel` at any time, from a handler of a signal too."""

    def __init__(self) -> None:
        self._cancelling = Bell()

    def cancel(self) -> None:
        """End the process, and all that it started; it waits for nothing."""
        self._cancelling.ring()

    def ask(
        self,
        module: str,
        request: msgspec.Struct,
        environment: Mapping[str, str],
        kind: type[Answer],
    ) -> Answer:
        """Return the answer of a module's `look`. StoppedError, LookError; no process is left."""
        job = LookJob(module=module, request=msgspec.Raw(msgspec.json.encode(request)))
        transcript = WorkerTranscript()
        output = CapturedOutput()
        with closing(WorkerProcess(environment, WORKER)) as worker:
            worker.work_on(job, transcript, output)
            events = self._read(worker)
            code = worker.exit_code()
        for event in events:
            if isinstance(event, Looked):
                said = msgspec.json.decode(event.answer)
                if problem := said.get("problem"):
                    raise LookError(problem)
                return msgspec.convert(said, kind)
        if exited := transcript.exited:
            code = -exited.signal if exited.signal else exited.code or 0
        logs = [event for event in (*events, *output.end()) if isinstance(event, Log)]
        last = f": {logs[-1].lines[-1]}" if logs else ""
        raise LookError(f"its process ended with {code}{last}")

    def _read(self, worker: WorkerProcess) -> list[Event]:
        """All events, once the process has ended: whoever else holds the pipes keeps nobody
        waiting.
        """
        streams = Streams(worker.streams, worker.exit_fd, self._cancelling.fd)
        end = monotonic() + _LONGEST_S
        events: list[Event] = []
        while True:
            ready, more = streams.wait(end - monotonic())
            events += more
            if self._cancelling.fd in ready:
                raise StoppedError
            if monotonic() >= end:
                raise LookError(f"the step has not ended after {_LONGEST_S:.0f} s")
            if worker.exit_fd in ready:
                worker.kill_orphans()  # they may hold the pipes, and write to them without end
                for stream in worker.streams:
                    events += stream.rest()
                return events
