"""A program that is followed: started as it is, waited for, and read by what its processes write
into a folder.

Nothing that goes wrong here ends the program, or changes its exit code.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from gpulab.core.events import (
    Event,
    FindingMade,
    ProgramEnded,
    RunEnded,
    StageStarted,
    VariantFailed,
    WorkerReady,
)
from gpulab.core.failures import cancelled
from gpulab.core.jobs import Follow, RunRequest
from gpulab.core.machine import Device, cpu_name
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import FailureKind, Outcome, Stage
from gpulab.features import needed
from gpulab.features.program.files import Followers, environment
from gpulab.features.program.findings import (
    own_trace,
    program_exited,
    program_killed,
    program_not_started,
    program_timed_out,
    recordings_unreadable,
    under_nsys,
)
from gpulab.features.program.recordings import profiled, to_profile
from gpulab.proc.orphans import Orphans
from gpulab.proc.pipes import pipe
from gpulab.proc.spawn import DEVNULL, Process, spawn
from gpulab.proc.stack_reader import Reader
from gpulab.session.live import LiveSource
from gpulab.session.streams import CapturedOutput, Stream

NOT_FOUND, NOT_EXECUTABLE, TIMED_OUT = 127, 126, 124
"""Exit codes of a program that is not there, cannot be executed, or was ended by --timeout: as
those of env(1) and timeout(1).
"""


class ProgramSession(LiveSource):
    """Starts `command` and follows it. Where its output is `captured`, it has a session of its own
    and no stdin; else it shares those of this process.
    """

    def __init__(
        self,
        request: RunRequest,
        run_file: RunFile,
        command: Sequence[str],
        *,
        captured: bool,
        closed: Sequence[int] = (),
    ) -> None:
        """`closed`: standard streams that are closed in the caller, and in the program too."""
        super().__init__(request, run_file)
        assert isinstance(request.job, Follow)
        self._job = request.job
        self._command, self._captured, self._closed = command, captured, closed
        self._variant = self._job.subject.variants[0].name
        self._process: Process[bytes] | None = None
        self._signals: list[int] = []
        """That came before there was a process."""
        self._ready = False
        self._timed_out = self._cancelled = False
        self._not_started: OSError | None = None
        self._reader: threading.Thread | None = None
        self._read: list[Event] = []
        self._ended: ProgramEnded | None = None
        self._impatient = False
        self._started_as = command
        self.nsys: Any = None
        """The report that is asked for."""
        self.nsys_failed = self.signalled = False
        """Whether nsys did not start the program, and whether a signal came."""
        if self._job.nsys is not None:
            self.nsys = needed("counters.nsys").NsysReport(Path(self._job.nsys))

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def why_not_started(self) -> str:
        """The system's words; empty where it was started."""
        error = self._not_started
        return "" if error is None else error.strerror or str(error)

    @property
    def exit_code(self) -> int:
        """Return the exit code that this process should have, once the program has ended."""
        if self._not_started is not None:
            missing = isinstance(self._not_started, FileNotFoundError)
            return NOT_FOUND if missing else NOT_EXECUTABLE
        if self._timed_out:
            return TIMED_OUT
        ended = self._ended
        if ended is None:
            return NOT_EXECUTABLE
        return 128 + ended.signal if ended.signal else ended.code or 0

    @property
    def program_ended(self) -> bool:
        """Return whether there is nothing left to forward a signal to."""
        return self._not_started is not None or self._ended is not None

    def stop_reading(self) -> None:
        """Do without what its recordings say. For signal handlers."""
        self._impatient = True

    def forward(self, number: int) -> None:
        """Send the program a signal that came to this process alone."""
        process = self._process
        if process is None:
            self._signals.append(number)
        elif process.returncode is None:
            with suppress(OSError):
                process.send_signal(number)

    def _work(self) -> list[Event]:
        output = CapturedOutput()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(self._folder()))
            followers = Followers(folder, self._variant)
            orphans = stack.enter_context(Orphans("GPULAB_PROGRAM"))
            stack.callback(self._stop_telemetry)
            self._start_telemetry()
            self._append(StageStarted(stage=Stage.MEASURE, variant=self._variant))
            reader = Reader(folder)
            reader.start()
            stack.callback(reader.stop)
            variables = environment(folder, self._command, self._job.profile)
            trials = {
                "GPULAB_FOLLOW_WHAT_IF": self._job.what_if,
                "GPULAB_FOLLOW_TRY": self._job.tried,
            }
            variables |= {name: names for name, names in trials.items() if names is not None}
            if self.nsys is not None:
                self._started_as = self.nsys.of_program(self._command, folder)
            streams = self._start_program(stack, {**variables, **orphans.environment}, output)
            process = self._process
            if process is not None:
                self._follow(process, orphans, followers, streams)
                for stream in streams:  # a process that it left may hold the pipe
                    self._append(*stream.take()[0])
            if self.nsys is not None:
                self.nsys_failed = not (self._timed_out or self.nsys.began())
                self._append(FindingMade(finding=under_nsys(), explains=True))
            self._append(*followers.read())
            self._read_recordings(followers)
            if self._reader is not None:
                self._append(*self._what_was_read(self._reader))
            reasons = (process.not_recorded for process in followers.processes)
            if reason := next(filter(None, reasons), None):
                self._append(FindingMade(finding=reason, explains=True))
            if traces := [each for process in followers.processes for each in process.own_traces]:
                written = own_trace(count=len(traces), file=traces[-1])
                self._append(FindingMade(finding=written, explains=True))
        self._append(*output.end())
        return self._last_events()

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """For what its processes write; where there are no temporary files, beside the run's."""
        make = partial(tempfile.TemporaryDirectory, prefix="gpulab-", ignore_cleanup_errors=True)
        try:
            return make()
        except OSError:
            return make(dir=self.path.parent)

    def _start_program(
        self, stack: ExitStack, variables: Mapping[str, str], output: CapturedOutput
    ) -> list[Stream]:
        """Its streams, where its output is captured."""
        streams: list[Stream] = []
        try:
            with ExitStack() as child_end:
                captured: dict[str, int] = {}
                if self._captured:
                    fd, output_w = pipe(stack, child_end)
                    streams.append(output.stream(fd))
                    captured = {"stdin": DEVNULL, "stdout": output_w, "stderr": output_w}
                for fd in self._closed:
                    os.set_inheritable(fd, False)
                self._begun = monotonic()
                self._process = spawn(
                    self._started_as,
                    env=variables,
                    close_fds=self._captured,  # what its caller opened for it stays open
                    start_new_session=self._captured,
                    **captured,
                )
        except OSError as error:
            self._not_started = error
            return []
        for number in self._signals:
            self.forward(number)
        return streams

    def _follow(
        self, process: Process[bytes], orphans: Orphans, followers: Followers, streams: list[Stream]
    ) -> None:
        exit_fd = os.pidfd_open(process.pid)
        listening = self._listen(streams, exit_fd)
        deadline = None
        if self._request.timeout_s is not None:
            deadline = self._begun + self._request.timeout_s
        stops: list[int] = []
        next_stop = 0.0
        try:
            while True:
                ready, events = listening.wait(0.25)
                self._append(*events)
                if exit_fd in ready:
                    self._wait(process, orphans)
                    return
                self._append(*followers.read())
                recorded = to_profile(followers.processes)
                if recorded is not None and recorded.plain_for_ever:
                    self._read_recordings(followers)
                now = monotonic()
                if self._cancelling.fd in ready and self._cancelling.has_rung() and not stops:
                    self._cancelled = True
                    stops, next_stop = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], now
                if self.nsys is not None and self.nsys.hangs() and not stops:
                    stops, next_stop = [signal.SIGTERM, signal.SIGKILL], now
                if deadline is not None and now >= deadline and not stops:
                    self._timed_out = True
                    stops, next_stop = [signal.SIGTERM, signal.SIGKILL], now
                if stops and now >= next_stop:
                    self._signal_all(process, orphans, stops.pop(0))
                    next_stop = now + 3.0
                    stops = stops or [signal.SIGKILL]
        finally:
            os.close(exit_fd)

    def _wait(self, process: Process[bytes], orphans: Orphans) -> None:
        _, status, usage = os.wait4(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        process.returncode = code
        if self.nsys is not None and self.nsys.exit_code() is not None:
            code = self.nsys.exit_code()
        wall_s = monotonic() - self._begun
        stopped = self._timed_out or self._cancelled
        left = orphans.end() and 0 if stopped else orphans.count()
        self._ended = ProgramEnded(
            variant=self._variant,
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            wall_s=wall_s,
            user_s=usage.ru_utime,
            system_s=usage.ru_stime,
            resident_bytes=usage.ru_maxrss * 1024,
            left=left,
        )

    def _signal_all(self, process: Process[bytes], orphans: Orphans, number: int) -> None:
        """The program, and whatever it started."""
        with suppress(OSError):
            if self._captured:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
        if number != signal.SIGINT:
            orphans.signal(number)

    def _read_recordings(self, followers: Followers) -> None:
        """In a thread that leaves the program the CPU."""
        if self._reader is not None:
            return
        process = to_profile(followers.processes)
        if process is None:
            return
        options = self._job.profile

        def read() -> None:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
            try:
                trace = options.trace if options else None
                self._read.extend(profiled(self._variant, process, trace))
            except Exception as error:
                finding = recordings_unreadable(message=f"{type(error).__name__}: {error}")
                self._read.append(FindingMade(finding=finding, explains=True))

        self._reader = threading.Thread(target=read, name="recordings", daemon=True)
        self._reader.start()

    def _what_was_read(self, reader: threading.Thread) -> list[Event]:
        while reader.is_alive():
            reader.join(0.1)
            if self._impatient or self._cancelling.has_rung():
                finding = recordings_unreadable(message="a signal ended the reading")
                return [FindingMade(finding=finding, explains=True)]
        return self._read

    def _append(self, *events: Event) -> None:
        self._log.append(*events)
        for event in events:
            if isinstance(event, WorkerReady) and not self._ready:
                self._ready = True
                if self._telemetry:
                    self._telemetry.target(event, event.pid)

    def _last_events(self) -> list[Event]:
        events: list[Event] = []
        if not self._ready:  # a report has a device, and so has the history
            device = Device(kind="cpu", name=cpu_name(), threads=len(os.sched_getaffinity(0)))
            events.append(WorkerReady(pid=os.getpid(), device=device, environment={}))
        ended = self._ended
        if ended is not None:
            events.append(ended)
        kind, outcome = FailureKind.ERROR, Outcome.FAILED
        if self._cancelled or (ended is not None and ended.signal == signal.SIGINT):
            kind, outcome, cause = FailureKind.CANCELLED, Outcome.CANCELLED, cancelled()
        elif self._timed_out:
            kind, outcome = FailureKind.TIMEOUT, Outcome.TIMEOUT
            cause = program_timed_out(timeout_s=self._request.timeout_s or 0.0)
        elif ended is None:
            error = self._not_started
            message = error.strerror if error is not None else "unknown"
            cause = program_not_started(message=str(message))
        elif ended.signal:
            kind, cause = FailureKind.KILLED, program_killed(signal=ended.signal)
        elif ended.code:
            kind, cause = FailureKind.EXIT, program_exited(code=ended.code)
        else:
            return [*events, RunEnded(outcome=Outcome.DONE)]
        failed = VariantFailed(variant=self._variant, kind=kind, stage=Stage.MEASURE, cause=cause)
        return [*events, failed, RunEnded(outcome=outcome)]
