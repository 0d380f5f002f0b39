"""A question about one step of a user's code, answered in a process of its own."""

from __future__ import annotations

import os
import select
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import TypeVar

import msgspec

from gpulab.core.limits import LINE_BYTES
from gpulab.core.wire import with_length
from gpulab.proc.pipes import read_available
from gpulab.session.drive import StoppedError
from gpulab.session.worker_process import StartedWorker

_COMMAND = (sys.executable, "-P", "-m", "gpulab.engine.look")
_LONGEST_S = 300.0
_PRINTED = 4000
"""Of what the step printed, its end: it says why its process has died."""

Answer = TypeVar("Answer")


class LookError(Exception):
    """There is no answer; why."""


class Look:
    """Asks once; `cancel` at any time, from a handler of a signal too."""

    def __init__(self) -> None:
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for descriptor in (self._wake_r, self._wake_w):
            weakref.finalize(self, os.close, descriptor).atexit = False

    def cancel(self) -> None:
        """End the process, and all that it started; it waits for nothing."""
        with suppress(BlockingIOError):
            os.write(self._wake_w, b".")

    def ask(
        self,
        module: str,
        request: msgspec.Struct,
        environment: Mapping[str, str],
        kind: type[Answer],
    ) -> Answer:
        """Return the answer of a feature's `look`. StoppedError, LookError; no process is left."""
        worker = StartedWorker(environment, (*_COMMAND, module))
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

    def _read(self, worker: StartedWorker) -> tuple[bytes, bytes]:
        """(what it answered, what it printed last), once its process has ended: whoever else holds
        the pipes keeps nobody waiting.
        """
        answer = printed = b""
        end = monotonic() + _LONGEST_S
        open_fds = [worker.events_fd, worker.output_fd]
        ended = False
        while not ended:
            others = [worker.exit_fd, self._wake_r]
            ready = select.select([*open_fds, *others], [], [], max(0.0, end - monotonic()))[0]
            if self._wake_r in ready:
                raise StoppedError
            if monotonic() >= end:
                raise LookError(f"the step has not ended after {_LONGEST_S:.0f} s")
            if worker.exit_fd in ready:
                worker.kill_orphans()  # they may hold the pipes, and write to them without end
                ended = True
            for fd in list(open_fds):
                while data := read_available(fd):
                    if fd == worker.events_fd:
                        answer = (answer + data)[: LINE_BYTES + 1]
                    else:
                        printed = (printed + data)[-_PRINTED:]
                    if not ended:
                        break
                if data == b"":
                    open_fds.remove(fd)
        return answer, printed
