"""A forked child process and its parent: the messages between them, and how it dies.

The parent never waits for a message alone: whoever inherited the connection, such as a process that
the scenario started, would keep it waiting.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec
import psutil

from gpulab.core.statuses import StopReason
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.channel import Channel
from gpulab.proc.pipes import connection_pair, to_high_number
from gpulab.proc.tree import ForkGuard, serve_and_exit


class Preload(msgspec.Struct, frozen=True, kw_only=True):
    """Slow imports of the first measuring process, which fork servers make once for all others."""

    modules: list[str] = []
    vector_instructions: str | None = None
    """What torch's compiler found, where it looked."""
    opened: bool = False
    """Whether the device is open: two processes that open it at once take several times as long."""
    rounds_next: bool = False
    """Whether its rounds come next: until then others may import meanwhile."""


class Child:
    """A child process, as its parent sees it. `serve` runs in it."""

    def __init__(self, forks: ForkGuard, serve: Callable[[ParentPipe], None]) -> None:
        self._connection, theirs = connection_pair()
        self.pid = forks.fork()
        if self.pid == 0:
            self._connection.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            pipe = ParentPipe(Connection(to_high_number(os.dup(theirs.fileno()))))
            theirs.close()
            serve_and_exit(lambda: serve(pipe))
        theirs.close()
        self._exit_fd = os.pidfd_open(self.pid)
        self.status: int | None = None
        """Its wait status; None while it runs."""

    def send(self, message: object) -> None:
        """What it receives: its turn with what the child before it left, a job, a preload."""
        with suppress(OSError):  # its end is noticed when it is read from
            self._connection.send(message)

    def take(self, *words: str) -> tuple[str, Any] | None:
        """Wait for its next message with one of the words; None where it ended first."""
        while True:
            if self.status is None and self._connection not in wait(
                [self._connection, self._exit_fd]
            ):
                self.wait()
            try:
                word, value = self._connection.recv()
            except (EOFError, OSError):
                self.wait()
                return None
            if word in words:
                return word, value

    def wait_until_ready(self) -> bool:
        """False where it ended first."""
        return self.take("ready") is not None

    def result(self, on_preload: Callable[[Preload], None]) -> Any:
        """Wait for its result; None where it ended first. `on_preload` gets earlier messages."""
        while (message := self.take("preload", "result")) is not None:
            word, value = message
            if word == "result":
                return value
            if not value.rounds_next:
                self.send("go")
            on_preload(value)
            if value.rounds_next:
                self.send("go")
        return None

    def has_finished(self) -> bool:
        """Wait for its end; True where it did everything before. One that stays is suspended, and
        dies with its parent.
        """
        finished = self.take("finished", "stays")
        if finished is not None and finished[0] == "stays":
            os.kill(self.pid, signal.SIGSTOP)
            return True
        self.wait()
        return finished is not None and not self.status

    def wait(self) -> None:
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
            os.close(self._exit_fd)
            self._connection.close()


def kill_all(children: Iterable[Child]) -> None:
    """Kill them and their children, and wait until all are gone: to let go of a device takes
    time.
    """
    alive = [child for child in children if child.status is None]
    below: list[int] = []
    for child in alive:
        below += [process.pid for process in psutil.Process(child.pid).children()]
        os.kill(child.pid, signal.SIGKILL)
    for child in alive:
        child.wait()
    for pid in below:  # a subreaper is their parent by now
        with suppress(ChildProcessError, ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class ParentPipe:
    """A child's end of the connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # a child that the scenario forks sends nothing
        os.register_at_fork(after_in_child=connection.close)

    def send(self, word: str, value: object = None) -> None:
        self._connection.send((word, value))

    def receive(self) -> Any:
        """Wait for the next message. The process ends where the parent is gone."""
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            os._exit(1)

    def begin(self, on_preload: Callable[[Preload], None]) -> Any:
        """Wait for this process's turn; returns what the one before left. `on_preload` imports what
        is asked for until then.
        """
        while isinstance(message := self.receive(), Preload):
            on_preload(message)
            if message.rounds_next:
                self.send("ready")
        return message

    def preload(self, preload: Preload, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Send slow imports; returns once the parent has passed them on, and where the rounds come
        next once all have made them. `meanwhile`: what this process does until then.
        """
        self.send("preload", preload)
        meanwhile()
        self.receive()

    def finish(self, *, stays: bool = False) -> None:
        """Say that everything is done. `stays`: wait suspended until the parent ends."""
        self.send("stays" if stays else "finished")
        if stays:
            self.receive()


@dataclass
class Turn:
    """The turn of one measuring process. Before it begins the process sends no event."""

    _pipe: ParentPipe
    _channel: Channel

    def begin(self) -> ProcessResult | None:
        """Wait for it; returns what the process before left."""
        self._pipe.send("ready")
        before: ProcessResult | None = self._pipe.receive()
        self._channel.take_turn()
        return before

    def preload(self, preload: Preload) -> None:
        self._pipe.preload(preload)

    def end(self, result: ProcessResult) -> StopReason | None:
        """Send the result; why the run stops with this process, None where it goes on."""
        self._pipe.send("result", result)
        reason: StopReason | None = self._pipe.receive()
        return reason
