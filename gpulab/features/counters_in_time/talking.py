"""Lines to another process, and its answers: waited for with a limit, and until who runs it all
cancels.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping, Sequence
from time import monotonic

from gpulab.core.findings import Finding
from gpulab.features.counters_in_time import findings
from gpulab.proc.spawn import DEVNULL, PIPE, spawn
from gpulab.proc.tree import kill_group


class NoAnswerError(Exception):
    """The process ended, or hangs."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


class CancelledError(Exception):
    """Nobody waits for an answer any more."""


class Talk:
    """A process that reads lines and answers in lines; `close` leaves nothing of it. OSError."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        cancelled: int | None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._name, self._cancelled = name, cancelled
        self._partial = b""
        self._process = spawn(
            command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=environment,
            start_new_session=True,
        )

    def ask(self, line: bytes, timeout_s: float) -> bytes:
        """The answer to a line. NoAnswerError, CancelledError."""
        assert self._process.stdin is not None
        message = line + b"\n"
        try:
            while message:
                message = message[self._process.stdin.write(message) or 0 :]
        except BrokenPipeError:
            raise self._ended() from None
        return self.answer(timeout_s)

    def answer(self, timeout_s: float) -> bytes:
        """The next line. NoAnswerError, CancelledError."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        waited = [output] if self._cancelled is None else [output, self._cancelled]
        until = monotonic() + timeout_s
        while b"\n" not in self._partial:
            ready, _, _ = select.select(waited, [], [], max(0.0, until - monotonic()))
            if self._cancelled in ready:
                raise CancelledError
            if not ready:
                reason = findings.counters_hang(process=self._name, timeout_s=timeout_s)
                raise NoAnswerError(reason)
            data = os.read(output, 1 << 18)
            if not data:
                raise self._ended()
            self._partial += data
        line, _, self._partial = self._partial.partition(b"\n")
        return line

    def _ended(self) -> NoAnswerError:
        code = self._process.wait()
        end = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return NoAnswerError(findings.counters_ended(process=self._name, end=end))

    def close(self) -> None:
        kill_group(self._process.pid, signal.SIGKILL)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait()
