"""One run: starts the worker, merges everything into one ordered stream, writes the run file as it goes.

Every face uses this object and nothing else of how a run is made. It works in a thread of its own; the
face calls `drain` on its own tick.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import IO

from gpulab.model.events import (
    LOST_DEVICE,
    LOST_PIPE,
    AnyEvent,
    Noticed,
    RunEnded,
    RunStarted,
    TelemetryStarted,
    VariantFailed,
    WorkerDone,
    WorkerExited,
    WorkerReady,
)
from gpulab.model.plain import plain
from gpulab.model.request import RunRequest
from gpulab.model.wire import decode, encode
from gpulab.run.environment import environment
from gpulab.run.output import Output
from gpulab.run.record import RunFile
from gpulab.run.sampler import Sampler

WORKER = (sys.executable, "-P", "-m", "gpulab.worker")
_CHUNK = 1 << 18
_LAST_WORD_S = 10.0


class Session:
    """Runs one request. `start`, then `drain` until `ended`; `cancel` at any time."""

    def __init__(self, request: RunRequest, run_file: RunFile, command: Sequence[str] = WORKER) -> None:
        self.request = request
        self._file = run_file
        self._recording = True
        self._command = command
        self._events: deque[AnyEvent] = deque()
        self._output = Output()
        self._ended = threading.Event()
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC)
        self._why_stopped: str | None = None
        self._closing = threading.Lock()
        self._error: Exception | None = None
        self._exit: WorkerExited | None = None
        self._done: WorkerDone | None = None
        self._came = 0
        self._garbled = 0
        self._sampler: Sampler | None = None
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def ended(self) -> bool:
        """Whether the last event is there to be drained."""
        return self._ended.is_set()

    def start(self) -> None:
        self._thread.start()

    def drain(self) -> list[AnyEvent]:
        """All events since the last call, in order."""
        found = []
        with suppress(IndexError):
            while True:
                found.append(self._events.popleft())
        return found

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; returns whether it has come."""
        return self._ended.wait(timeout)

    def switch_telemetry(self, *, on: bool) -> None:
        """Pause the sampler, or let it go on; the run goes on in any case."""
        if self._sampler:
            self._sampler.switch(on=on)

    def cancel(self) -> None:
        """Stop the worker and all it started. What was measured stays; the end arrives as an event."""
        with self._closing:
            if not self.ended:
                os.write(self._wake_w, b"c")

    def _run(self) -> None:
        try:
            self._emit(RunStarted(request=self.request, at=datetime.now(UTC).isoformat(), host=socket.gethostname()))
            try:
                self._sampler = self._start_sampler()
                self._work()
            except Exception as error:
                self._error = error
            if self._sampler:
                self._emit(*self._sampler.stop())
            for log in self._output.end():
                self._emit(log)
            self._emit(*self._last_words())
        finally:
            self._file.close()
            with self._closing:
                self._ended.set()
                os.close(self._wake_r)
                os.close(self._wake_w)

    def _start_sampler(self) -> Sampler | None:
        if self.request.telemetry == "off":
            return None
        try:
            return Sampler(self.request.telemetry)
        except OSError as error:
            self._emit(TelemetryStarted(why=f"the telemetry process could not be started: {error}"))
            return None

    def _work(self) -> None:
        with ExitStack() as parent_s, ExitStack() as worker_s:
            events_r, events_w = _pipe(parent_s, worker_s)
            log_r, log_w = _pipe(parent_s, worker_s)
            process = subprocess.Popen(
                [*self._command, str(events_w)],
                stdin=subprocess.PIPE,
                stdout=log_w,
                stderr=log_w,
                pass_fds=[events_w],
                start_new_session=True,
                env=environment(self.request),
            )
            parent_s.enter_context(process)
            worker_s.close()
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):
                    process.stdin.write(encode(self.request))
                    process.stdin.flush()
                self._follow(process, process.stdin, events_r, log_r)
            finally:
                # The warden ends by itself; this is for the one that was killed.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _follow(self, process: subprocess.Popen[bytes], commands: IO[bytes], events_r: int, log_r: int) -> None:
        """Read both pipes until the warden has ended and they are empty."""
        poll = select.poll()
        exit_fd = os.pidfd_open(process.pid)
        sources = {events_r: self._take_events, log_r: self._take_log}
        if self._sampler:
            sources[self._sampler.fd] = self._take_telemetry
        for fd in (*sources, exit_fd, self._wake_r):
            poll.register(fd, select.POLLIN)
        self._partial = b""
        deadline = monotonic() + self.request.timeout_s if self.request.timeout_s else None
        last_word: float | None = None
        try:
            while True:
                until = min((one for one in (deadline, last_word) if one), default=None)
                ready = {fd for fd, _ in poll.poll(None if until is None else max(0.0, until - monotonic()) * 1000)}
                for fd, take in sources.items():
                    if fd in ready and not take(fd):
                        poll.unregister(fd)
                if exit_fd in ready:
                    for fd in (events_r, log_r):
                        while sources[fd](fd):
                            pass
                    return
                stop = "cancelled" if self._wake_r in ready and os.read(self._wake_r, 64) else None
                if deadline and monotonic() >= deadline:
                    stop, deadline = "timeout", None
                if stop and self._why_stopped is None:
                    self._why_stopped, last_word = stop, monotonic() + _LAST_WORD_S
                    with suppress(BrokenPipeError, ValueError):
                        commands.write(b"c")
                        commands.flush()
                if last_word and monotonic() >= last_word:
                    return
        finally:
            os.close(exit_fd)

    def _take_events(self, fd: int) -> bool:
        data = _read(fd)
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in filter(None, lines):
            try:
                event = decode(line)
            except ValueError:
                self._garbled += 1
                continue
            if isinstance(event, WorkerExited):
                self._exit = event
            if isinstance(event, WorkerReady) and self._sampler:
                self._sampler.target(event)
            if isinstance(event, WorkerDone):
                self._done = event
            elif self._done is None:
                self._came += 1
            if event is not None:
                self._emit(event)
        return bool(data)

    def _take_telemetry(self, fd: int) -> bool:
        assert self._sampler is not None
        events, more = self._sampler.take()
        self._emit(*events)
        return more

    def _take_log(self, fd: int) -> bool:
        data = _read(fd)
        if data:
            self._emit(*self._output.take(data))
        return bool(data)

    def _emit(self, *events: AnyEvent) -> None:
        if self._recording and events:
            try:
                self._file.append(events)
            except OSError as error:
                self._recording = False
                self._events.append(Noticed(text=f"the run file ends here: {error}"))
        self._events.extend(events)

    def _last_words(self) -> list[AnyEvent]:
        """How the run ended, from the warden's report, or from its absence."""
        found: list[AnyEvent] = []
        exited = self._exit
        if exited and exited.orphans:
            found.append(Noticed(text=f"the scenario left {exited.orphans} processes behind; they were stopped"))
        if self._garbled > (self._done is None):  # a worker that was killed may leave half a line
            found.append(Noticed(text=f"{self._garbled} lines of the event pipe were not the lab's and were skipped"))
        if self._done and self._done.sent == self._came:  # a stop that came too late changes nothing
            return [*found, RunEnded(outcome="done")]
        if not (exited and exited.code == LOST_DEVICE):  # that one has said it all
            found.append(self._failure(exited))
        return [*found, RunEnded(outcome=self._why_stopped or "failed")]

    def _failure(self, exited: WorkerExited | None) -> VariantFailed:
        if self._error:
            return _whole_run("crash", "start", f"the worker could not be run: {self._error}")
        if self._done:
            lost = self._done.sent - self._came
            return _whole_run(
                "crash", "measure", f"{lost} events of the measurement were lost: did the scenario write to them?"
            )
        if exited is None:
            return _whole_run(self._why_stopped or "killed", "end", "the worker's warden ended without a word")
        kind, message = _cause(exited)
        if self._why_stopped == "timeout":
            kind, message = (
                "timeout",
                f"no end after {self.request.timeout_s:g} s: raise --timeout, or mend what never ends",
            )
        elif self._why_stopped == "cancelled":
            kind, message = "cancelled", "stopped by the user"
        return VariantFailed(
            variant=exited.variant if exited.variant in {one.name for one in self.request.variants} else None,
            kind=kind,
            stage=exited.stage,
            message=message,
            line=_line(exited.trace, self.request.path),
            traceback=plain(exited.trace),
        )


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe, read here without blocking; each end is closed with its stack."""
    r, w = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(r, False)
    reader.callback(os.close, r)
    writer.callback(os.close, w)
    return r, w


def _whole_run(kind: str, stage: str, message: str) -> VariantFailed:
    return VariantFailed(variant=None, kind=kind, stage=stage, message=message)


def _cause(exited: WorkerExited) -> tuple[str, str]:
    if exited.signal == signal.SIGKILL:
        return "killed", "killed by the system, most likely for want of memory"
    if exited.signal:
        named = signal.Signals(exited.signal).name if exited.signal in set(signal.Signals) else exited.signal
        return "crash", f"the worker crashed: {named} ({signal.strsignal(exited.signal)})"
    if exited.code == LOST_PIPE:
        return "crash", "the scenario closed the lab's event pipe: leave file descriptors alone that you did not open"
    return "exit", f"the worker's process ended with exit code {exited.code}: os._exit, or a native library's exit"


def _line(trace: str, path: str) -> int | None:
    """The scenario's innermost line in a faulthandler stack, most recent call first."""
    found = re.search(rf'File "{re.escape(path)}", line (\d+)', trace)
    return int(found.group(1)) if found else None


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""
