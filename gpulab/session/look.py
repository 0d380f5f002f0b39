"""A question about one step of a user's code, answered in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from time import monotonic
from typing import TypeVar

import msgspec

from gpulab.core.events import Event
from gpulab.core.limits import LINE_BYTES
from gpulab.core.wire import with_length
from gpulab.proc.pipes import Bell, read_available
from gpulab.session.drive import StoppedError
from gpulab.session.streams import Stream, Streams
from gpulab.session.worker_process import WorkerProcess

_COMMAND = (sys.executable, "-P", "-m", "gpulab.engine.look")
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
        """Return the answer of a feature's `look`. StoppedError, LookError; no process is left."""
        worker = WorkerProcess(environment, (*_COMMAND, module))
        try:
            worker.tell(with_length(msgspec.json.encode(request)))
            answer, printed = self._read(worker)
            code = worker.exit_code()
        finally:
            worker.close()
        try:
            said = msgspec.json.decode(answer)
        except msgspec.DecodeError:
            *_, last = printed.decode(errors="replace").strip().splitlines() or [""]
            ended = f"its process ended with {code}"
            raise LookError(f"{ended}: {last}" if last else ended) from None
        if problem := said.get("problem"):
            raise LookError(problem)
        return msgspec.convert(said, kind)

    def _read(self, worker: WorkerProcess) -> tuple[bytes, bytes]:
        """(what it answered, what it printed last), once its process has ended: whoever else holds
        the pipes keeps nobody waiting.
        """
        answer = printed = b""

        def answered() -> tuple[list[Event], bool]:
            nonlocal answer
            data = read_available(worker.events_fd) or b""
            answer = (answer + data)[: LINE_BYTES + 1]
            return [], bool(data)

        def prints() -> tuple[list[Event], bool]:
            nonlocal printed
            data = read_available(worker.output_fd) or b""
            # its end says why its process has died
            printed = (printed + data)[-4000:]
            return [], bool(data)

        own = [Stream(worker.events_fd, answered), Stream(worker.output_fd, prints)]
        streams = Streams(own, worker.exit_fd, self._cancelling.fd)
        end = monotonic() + _LONGEST_S
        while True:
            ready, _ = streams.wait(end - monotonic())
            if self._cancelling.fd in ready:
                raise StoppedError
            if monotonic() >= end:
                raise LookError(f"the step has not ended after {_LONGEST_S:.0f} s")
            if worker.exit_fd in ready:
                worker.kill_orphans()  # they may hold the pipes, and write to them without end
                for stream in own:
                    stream.rest()
                return answer, printed
