"""A forked child process: its parent's end and its own end of their two pipes, and how it dies.

The parent never waits for the end of a pipe alone: whoever inherited the pipe, such as a process
that the scenario started, would keep it waiting.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NoReturn, TypeVar

import msgspec
import psutil

from gpulab.core.jobs import Measure, TimedJob, TimeFunctions
from gpulab.core.statuses import StopReason
from gpulab.proc.pipes import to_high_number, write_all
from gpulab.proc.tree import ForkGuard

# Lines on the pipes. A child's begin with one of these words, since a scenario may write to every
# descriptor there is: the parent skips all other lines.
_READY = b"ready"
_PRELOAD = b"preload "
_RESULT = b"result "
_FINISHED = b"finished"
_STAYS = b"stays"
_NEXT = "next"
_GO = b"go"

Result = TypeVar("Result", bound=msgspec.Struct)
"""What one child leaves to the next."""


class Preload(msgspec.Struct, frozen=True, kw_only=True):
    """Slow imports of the first measuring process, which fork servers make once for all others."""

    modules: list[str] = []
    vector_instructions: str | None = None
    """What torch's compiler found, where it looked."""
    opened: bool = False
    """Whether the device is open: two processes that open it at once take several times as long."""
    rounds_next: bool = False
    """Whether its rounds come next: until then others may import meanwhile."""


class Child(Generic[Result]):
    """A child process, as its parent sees it."""

    def __init__(
        self,
        forks: ForkGuard,
        number: int,
        kind: type[Result],
        serve: Callable[[int, ParentPipe[Result]], NoReturn],
    ) -> None:
        self._kind = kind
        self._from_child, to_parent = os.pipe2(os.O_CLOEXEC)
        from_parent, self._to_child = os.pipe2(os.O_CLOEXEC)
        self.pid = forks.fork()
        if self.pid == 0:
            os.close(self._from_child)
            os.close(self._to_child)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            serve(number, ParentPipe(to_parent, from_parent, kind))
        os.close(to_parent)
        os.close(from_parent)
        self._exit_fd = os.pidfd_open(self.pid)
        self._data = b""
        self.status: int | None = None
        """Its wait status; None while it runs."""

    def wait_until_ready(self) -> bool:
        """False where it ended first."""
        return self._take(_READY) is not None

    def give_job(self, job: TimedJob, numbers: range) -> None:
        """To one that was forked before there was a job. `numbers`: of the processes it forks."""
        self._send(msgspec.json.encode(job))
        self._send(msgspec.json.encode((numbers.start, numbers.stop)))

    def begin(self, before: Result | None) -> None:
        """Give it its turn, and what the child before it left."""
        self._send(msgspec.json.encode(before))

    def preload(self, preload: Preload) -> None:
        """Have it import these before its turn; it is ready once more then."""
        self._send(_PRELOAD + msgspec.json.encode(preload))

    def result(self, on_preload: Callable[[Preload], None]) -> Result | None:
        """Wait for its result; None where it ended first. `on_preload` gets earlier messages."""
        while True:
            line = self._take(_PRELOAD, _RESULT)
            if line is None:
                return None
            if line.startswith(_RESULT):
                return msgspec.json.decode(line.removeprefix(_RESULT), type=self._kind)
            preload = msgspec.json.decode(line.removeprefix(_PRELOAD), type=Preload)
            if not preload.rounds_next:
                self._send(_GO)
            on_preload(preload)
            if preload.rounds_next:
                self._send(_GO)

    def answer(self, reason: StopReason | None) -> None:
        """Say why the run stops with this process; None where it goes on."""
        if self.status is None:
            self._send((reason.value if reason else _NEXT).encode())

    def has_finished(self) -> bool:
        """Wait for its end; True where it did everything before. One that stays is suspended, and
        dies with its parent.
        """
        finished = self._take(_FINISHED, _STAYS)
        if finished == _STAYS:
            os.kill(self.pid, signal.SIGSTOP)
            return True
        self.wait()
        return finished is not None and not self.status

    def wait(self) -> None:
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
            for fd in (self._exit_fd, self._from_child, self._to_child):
                os.close(fd)

    def kill(self) -> None:
        """Kill it and wait until its own children are gone too: to let go of a device takes them
        time.
        """
        if self.status is not None:
            return
        below = [process.pid for process in psutil.Process(self.pid).children()]
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        for pid in below:  # a subreaper is their parent by now
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def _send(self, line: bytes) -> None:
        with suppress(BrokenPipeError):  # its end is noticed when it is read from
            write_all(self._to_child, line + b"\n")

    def _take(self, *prefixes: bytes) -> bytes | None:
        """The next line with one of the prefixes; None where the process ended first."""
        while True:
            while b"\n" not in self._data:
                ready = select.select([self._from_child, self._exit_fd], [], [])[0]
                part = os.read(self._from_child, 1 << 16) if self._from_child in ready else b""
                self._data += part
                if not part:
                    self.wait()
                    return None
            line, _, self._data = self._data.partition(b"\n")
            if line.startswith(prefixes):
                return line


class ParentPipe(Generic[Result]):
    """A child's ends of the two pipes."""

    def __init__(self, to_parent: int, from_parent: int, kind: type[Result]) -> None:
        self._to_parent = to_high_number(to_parent)
        self._from_parent = to_high_number(from_parent)
        self._kind = kind
        self._data = b""
        os.register_at_fork(after_in_child=self.forked)

    def ready(self) -> None:
        self._send(_READY)

    def receive_job(self) -> tuple[Measure | TimeFunctions, range]:
        """The job, and the numbers of the processes to fork; for one that was forked before it."""
        job = msgspec.json.decode(self._line(), type=Measure | TimeFunctions)
        return job, range(*msgspec.json.decode(self._line(), type=tuple[int, int]))

    def begin(self, on_preload: Callable[[Preload], None] | None = None) -> Result | None:
        """Wait for this process's turn; returns what the one before left. `on_preload` imports what
        is asked for until then.
        """
        line = self._line()
        while on_preload and line.startswith(_PRELOAD):
            on_preload(msgspec.json.decode(line.removeprefix(_PRELOAD), type=Preload))
            self.ready()
            line = self._line()
        return None if line == b"null" else msgspec.json.decode(line, type=self._kind)

    def send_preload(self, preload: Preload) -> None:
        self._send(_PRELOAD + msgspec.json.encode(preload))

    def wait_for_preload(self) -> None:
        """Until the parent has passed it on; where the rounds come next, until all have made it."""
        self._line()

    def send_result(self, result: Result) -> None:
        self._send(_RESULT + msgspec.json.encode(result))

    def ask(self, result: Result) -> StopReason | None:
        """Send the result; why the run stops with this process, None where it goes on."""
        self.send_result(result)
        word = self._line().decode()
        return None if word == _NEXT else StopReason(word)

    def finish(self, *, stays: bool = False) -> None:
        """Say that everything is done. `stays`: wait suspended until the parent ends."""
        self._send(_STAYS if stays else _FINISHED)
        if stays:
            self._line()

    def forked(self) -> None:
        """A child that the scenario forks writes nothing."""
        for fd in (self._to_parent, self._from_parent):
            with suppress(OSError):
                os.close(fd)

    def _send(self, line: bytes) -> None:
        # a scenario may have written half a line before
        write_all(self._to_parent, b"\n" + line + b"\n")

    def _line(self) -> bytes:
        while b"\n" not in self._data:
            part = os.read(self._from_parent, 1 << 16)
            if not part:  # the parent is gone
                os._exit(1)
            self._data += part
        line, _, self._data = self._data.partition(b"\n")
        return line
