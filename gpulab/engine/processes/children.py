"""A process and the one that forked it for a part of a run: the lines that they exchange, and the
end of the first.
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
from gpulab.engine.processes.channel import to_high_number
from gpulab.engine.processes.forking import Forks

_NEXT, _GO = "next", b"go"
_READY, _IMPORTS, _HANDOVER, _FINISHED, _STAYS = (
    b"ready",
    b"imports ",
    b"handover ",
    b"finished",
    b"stays",
)
"""How a line of a child begins. A scenario may write to every descriptor there is: all others are
its.
"""
Baton = TypeVar("Baton", bound=msgspec.Struct)
"""What one child leaves to the next."""


class Imports(msgspec.Struct, frozen=True, kw_only=True):
    """What the first measuring process imported that takes long, so that no other has to."""

    modules: list[str] = []
    vector_instructions: str | None = None
    """What the compiler found, where it looked."""
    opened: bool = False
    """Whether it has opened the device: while others do, that takes it several times as long."""
    rounds_next: bool = False
    """Whether its rounds come next: until then others may import beside it."""


class Child(Generic[Baton]):
    """A child, seen from the process that forked it: whoever else holds its pipe open keeps nobody
    waiting.
    """

    def __init__(
        self,
        forks: Forks,
        number: int,
        kind: type[Baton],
        become: Callable[[int, Pipes[Baton]], NoReturn],
    ) -> None:
        self._kind = kind
        self._up, up_w = os.pipe2(os.O_CLOEXEC)
        down_r, self._down = os.pipe2(os.O_CLOEXEC)
        self.pid = forks.fork()
        if self.pid == 0:
            os.close(self._up)
            os.close(self._down)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            become(number, Pipes(up_w, down_r, kind))
        os.close(up_w)
        os.close(down_r)
        self._exit_fd = os.pidfd_open(self.pid)
        self._data = b""
        self.status: int | None = None

    def is_ready(self) -> bool:
        """Wait until it says so; False where it ended first."""
        return self._take(_READY) is not None

    def give_job(self, job: TimedJob, numbers: range) -> None:
        """To one that was forked before there was a job; its processes have these numbers."""
        self._tell(msgspec.json.encode(job))
        self._tell(msgspec.json.encode((numbers.start, numbers.stop)))

    def begin(self, before: Baton | None) -> None:
        """It is its turn."""
        self._tell(msgspec.json.encode(before))

    def import_too(self, imports: Imports) -> None:
        """Have it import these before its turn; it is ready once more then."""
        self._tell(_IMPORTS + msgspec.json.encode(imports))

    def handover(self, imported: Callable[[Imports], None]) -> Baton | None:
        """What it hands over; None where it ended first. `imported` takes what it tells before
        that.
        """
        while (line := self._take(_IMPORTS, _HANDOVER)) is not None:
            if not line.startswith(_IMPORTS):
                return msgspec.json.decode(line.removeprefix(_HANDOVER), type=self._kind)
            imports = msgspec.json.decode(line.removeprefix(_IMPORTS), type=Imports)
            if not imports.rounds_next:
                self._tell(_GO)
            imported(imports)
            if imports.rounds_next:
                self._tell(_GO)
        return None

    def answer(self, reason: StopReason | None) -> None:
        """Why measuring ends with this process; None where it goes on."""
        if self.status is None:
            self._tell((reason.value if reason else _NEXT).encode())

    def has_finished(self) -> bool:
        """Wait for its end; whether it did everything before. One that stays is stopped, and ends
        with its parent.
        """
        finished = self._take(_FINISHED, _STAYS)
        if finished == _STAYS:
            os.kill(self.pid, signal.SIGSTOP)
            return True
        self.wait()
        return finished is not None and not self.status

    @property
    def is_there(self) -> bool:
        """Whether it has not ended."""
        return self.status is None

    def wait(self) -> None:
        """Until it has ended."""
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
            for fd in (self._exit_fd, self._up, self._down):
                os.close(fd)

    def dismiss(self) -> None:
        """It is not needed any more, nor what it forked: that dies with it, and takes its time to
        leave a device.
        """
        if self.status is None:
            below = [process.pid for process in psutil.Process(self.pid).children()]
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
            for pid in below:  # those of a subreaper are its own by now
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _tell(self, line: bytes) -> None:
        with suppress(BrokenPipeError):  # its end is read by and by
            _write(self._down, line + b"\n")

    def _take(self, *prefixes: bytes) -> bytes | None:
        """The next line with one of the prefixes; None where the process ended first."""
        while True:
            while b"\n" not in self._data:
                ready = select.select([self._up, self._exit_fd], [], [])[0]
                part = os.read(self._up, 1 << 16) if self._up in ready else b""
                self._data += part
                if not part:
                    self.wait()
                    return None
            line, _, self._data = self._data.partition(b"\n")
            if line.startswith(prefixes):
                return line


class Pipes(Generic[Baton]):
    """The child's ends of its two pipes."""

    def __init__(self, up: int, down: int, kind: type[Baton]) -> None:
        self._up, self._down, self._kind = to_high_number(up), to_high_number(down), kind
        self._data = b""
        os.register_at_fork(after_in_child=self.forked)

    def ready(self) -> None:
        """This process has all that it needs for its turn."""
        _write(self._up, b"\n" + _READY + b"\n")

    def receive_job(self) -> tuple[Measure | TimeFunctions, range]:
        """Wait for a job, and for the numbers of its processes."""
        job = msgspec.json.decode(self._line(), type=Measure | TimeFunctions)
        return job, range(*msgspec.json.decode(self._line(), type=tuple[int, int]))

    def begin(self, import_too: Callable[[Imports], None] | None = None) -> Baton | None:
        """Wait for this process's turn; what the one before handed over. What it is to import until
        then it does.
        """
        line = self._line()
        while import_too and line.startswith(_IMPORTS):
            import_too(msgspec.json.decode(line.removeprefix(_IMPORTS), type=Imports))
            self.ready()
            line = self._line()
        return None if line == b"null" else msgspec.json.decode(line, type=self._kind)

    def tell_imports(self, imports: Imports) -> None:
        """To every process that forks others."""
        _write(self._up, b"\n" + _IMPORTS + msgspec.json.encode(imports) + b"\n")

    def wait_for_imports(self) -> None:
        """Until they have been told, or made where the rounds come next."""
        self._line()

    def imported(self, imports: Imports) -> None:
        """Tell, and wait."""
        self.tell_imports(imports)
        self.wait_for_imports()

    def hand_over(self, baton: Baton) -> None:
        _write(self._up, b"\n" + _HANDOVER + msgspec.json.encode(baton) + b"\n")

    def ask(self, baton: Baton) -> StopReason | None:
        """Hand over, and wait for the word whether this was the last process, and why."""
        self.hand_over(baton)
        word = self._line().decode()
        return None if word == _NEXT else StopReason(word)

    def finish(self, *, stays: bool = False) -> None:
        """Everything is done: what follows is the end of the process, or, where it `stays`, that of
        its parent.
        """
        _write(self._up, b"\n" + (_STAYS if stays else _FINISHED) + b"\n")
        if stays:
            self._line()

    def forked(self) -> None:
        """A child that the scenario forks writes nothing."""
        for fd in (self._up, self._down):
            with suppress(OSError):
                os.close(fd)

    def _line(self) -> bytes:
        while b"\n" not in self._data:
            part = os.read(self._down, 1 << 16)
            if not part:  # the conductor is gone, and this process with it
                os._exit(1)
            self._data += part
        line, _, self._data = self._data.partition(b"\n")
        return line


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
