"""One run: starts the worker, merges everything into one ordered stream, writes the run file as it goes.

Every face uses this object and nothing else of how a run is made. It works in a thread of its own; the
face calls `drain` on its own tick.
"""

from __future__ import annotations

import os
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

from msgspec.structs import replace

from gpulab.model.events import (
    LOST_DEVICE,
    AnyEvent,
    Checked,
    Noticed,
    OutOfMemory,
    RunEnded,
    RunStarted,
    Samples,
    TelemetryStarted,
    VariantFailed,
    VariantRefused,
    VariantSkipped,
    WorkerDone,
    WorkerExited,
    WorkerReady,
)
from gpulab.model.request import CANCEL, KNOWN, RunRequest
from gpulab.model.wire import decode, encode
from gpulab.run.ceilings import CeilingCache
from gpulab.run.ending import failure, whole_run
from gpulab.run.environment import environment
from gpulab.run.heard import Heard, pipe, read_some
from gpulab.run.output import Output
from gpulab.run.record import RunFile
from gpulab.run.sampler import Sampler

WORKER = (sys.executable, "-P", "-m", "gpulab.worker")
_CHUNK = 1 << 18
_LAST_WORD_S = 10.0
_UNFIT = (Checked, OutOfMemory, VariantFailed, VariantRefused, VariantSkipped)


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
        self._heard = Heard()
        self._unfit: set[str | None] = set()
        """Variants that are not worth a profile: wrong, refused, failed."""
        self._sampled: set[str | None] = set()
        self._deadline = monotonic() + request.timeout_s if request.timeout_s else None
        self._sampler: Sampler | None = None
        self._commands: IO[bytes] | None = None
        self._ceilings = CeilingCache(request)
        self._silent = False
        """Whether what the scenario prints has been seen before: it is loaded once more to be profiled."""
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
                self._work(self.request)
            except Exception as error:
                self._error = error
            if self._sampler:
                self._emit(*self._sampler.stop())
                self._sampler = None
            for log in self._output.end():
                self._emit(log)
            if self.request.profile and self._heard.well and not self._why_stopped:
                self._profile()
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

    def _profile(self) -> None:
        """Another worker, since the profiler slows what follows it. The run has been measured, whatever comes of it."""
        names = [one.name for one in self.request.variants if one.name in self._sampled - self._unfit]
        measured, self._silent = self._heard, True
        while names and not self._why_stopped:
            self._heard = Heard()
            try:
                self._work(replace(self.request, profiling=tuple(names)))
                ended = None if self._heard.well else self._failure().message
            except Exception as error:
                ended = str(error)
            at = self._heard.exit.variant if self._heard.exit else None
            if ended and not (self._why_stopped or "").startswith("cancel"):
                self._emit(Noticed(text=f"where the time of {at or 'its steps'} goes could not be seen: {ended}"))
            names = names[names.index(at) + 1 :] if ended and at in names else []
        self._heard = measured

    def _work(self, request: RunRequest) -> None:
        with ExitStack() as parent_s, ExitStack() as worker_s:
            events_r, events_w = pipe(parent_s, worker_s)
            log_r, log_w = pipe(parent_s, worker_s)
            process = subprocess.Popen(
                [*self._command, str(events_w)],
                stdin=subprocess.PIPE,
                stdout=log_w,
                stderr=log_w,
                pass_fds=[events_w],
                bufsize=0,  # what a write leaves in a buffer would be written again when the pipe is closed
                start_new_session=True,
                env=environment(request),
            )
            parent_s.enter_context(process)
            worker_s.close()
            assert process.stdin is not None
            self._commands = process.stdin
            try:
                self._tell(encode(request))
                self._follow(process, events_r, log_r)
            finally:
                # The warden ends by itself; this is for the one that was killed.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _follow(self, process: subprocess.Popen[bytes], events_r: int, log_r: int) -> None:
        """Read both pipes until the warden has ended and they are empty."""
        poll = select.poll()
        exit_fd = os.pidfd_open(process.pid)
        sources = {events_r: self._take_events, log_r: self._take_log}
        if self._sampler:
            sources[self._sampler.fd] = self._take_telemetry
        for fd in (*sources, exit_fd, self._wake_r):
            poll.register(fd, select.POLLIN)
        self._partial = b""
        deadline = self._deadline
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
                    self._tell(CANCEL)
                if last_word and monotonic() >= last_word:
                    return
        finally:
            os.close(exit_fd)

    def _take_events(self, fd: int) -> bool:
        data = read_some(fd)
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()
        for line in filter(None, lines):
            try:
                event = decode(line)
            except ValueError:
                self._heard.garbled += 1
                continue
            if isinstance(event, WorkerExited):
                self._heard.exit = event
            if isinstance(event, WorkerReady) and self._sampler:
                self._sampler.target(event)
            if isinstance(event, WorkerDone):
                self._heard.done = event
            elif self._heard.done is None:
                self._heard.came += 1
            if event is not None:
                self._emit(event)
        return bool(data)

    def _take_telemetry(self, fd: int) -> bool:
        assert self._sampler is not None
        events, more = self._sampler.take()
        self._emit(*events)
        return more

    def _take_log(self, fd: int) -> bool:
        data = read_some(fd)
        if data and not self._silent:
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
        for event in events:
            if isinstance(event, Samples):
                self._sampled.update(event.names[index] for index in event.variant)
            elif isinstance(event, _UNFIT) and not getattr(event, "ok", False):
                self._unfit.add(event.variant)
            if (known := self._ceilings.see(event)) is not None:
                self._tell(KNOWN)
                self._emit(known)

    def _tell(self, command: bytes) -> None:
        """A word to the worker's warden, which may be gone."""
        with suppress(BrokenPipeError, ValueError):
            while command and self._commands:
                command = command[self._commands.write(command) or 0 :]

    def _last_words(self) -> list[AnyEvent]:
        """How the run ended, from the warden's report, or from its absence."""
        exited, found = self._heard.exit, self._heard.notices()
        if self._heard.well and self._why_stopped != "cancelled":  # a stop that came too late changes nothing
            return [*found, RunEnded(outcome="done")]
        if not (exited and exited.code == LOST_DEVICE):  # that one has said it all
            found.append(self._failure())
        return [*found, RunEnded(outcome=self._why_stopped or "failed")]

    def _failure(self) -> VariantFailed:
        if self._error:
            return whole_run("crash", "start", f"the worker could not be run: {self._error}")
        if self._heard.done:
            lost = self._heard.done.sent - self._heard.came
            why = f"{lost} events of the measurement were lost: did the scenario write to them?"
            return whole_run("crash", "measure", why)
        if self._heard.exit is None:
            return whole_run(self._why_stopped or "killed", "end", "the worker's warden ended without a word")
        return failure(self.request, self._heard.exit, self._why_stopped)
