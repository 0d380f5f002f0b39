"""What a worker and its supervisor said, checked by event; and why a run did not end well."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field

from gpulab.catalog.needs import failed_import_of_torch
from gpulab.core.events import (
    PIPE_LOST,
    Event,
    VariantFailed,
    WorkerDone,
    WorkerExited,
)
from gpulab.core.failures import (
    cancelled,
    ended_by,
    event_after_end,
    event_pipe_closed,
    event_repeated,
    events_lost,
    events_unconfirmed,
    malformed_event_lines,
    processes_left_running,
    supervisor_gone,
    timeout,
    worker_exited,
    worker_not_run,
)
from gpulab.core.findings import Finding
from gpulab.core.jobs import RunRequest, subject_of
from gpulab.core.statuses import FailureKind, Outcome, Stage
from gpulab.core.text import plain
from gpulab.core.wire import decode, split


@dataclass
class WorkerTranscript:
    """`malformed` counts lines of the event pipe that are no events, `events` those that came in
    their order.

    Nothing is taken but in the order of the worker's numbers, before its last event.
    """

    exited: WorkerExited | None = None
    done: WorkerDone | None = None
    events: int = 0
    malformed: int = 0
    orphans: int = 0
    """Processes that outlived the supervisor as well."""
    _problems: dict[str, Finding] = field(default_factory=dict)

    def take(self, line: bytes) -> Event | None:
        """The event of a line; None where there is none to be believed."""
        parts = split(line)
        try:
            event = decode(parts[1]) if parts else None
        except ValueError:
            event = None
        if parts is None or event is None:
            self.malformed += 1
            return None
        number = parts[0]
        if number is not None and not self._is_next(number):
            return None
        if isinstance(event, WorkerExited):
            self.exited = event
        elif isinstance(event, WorkerDone):
            self.done = event
        return event

    @property
    def complete(self) -> bool:
        """Return whether the worker did its whole job: by its supervisor it ended well, and after
        its last stage.
        """
        exited = self.exited
        return exited is not None and exited.code == 0 and exited.stage == Stage.END

    @property
    def stage(self) -> Stage | None:
        """Return the stage in which the worker ended; None where nobody saw that."""
        return self.exited.stage if self.exited else None

    @property
    def variant(self) -> str | None:
        """At which variant, if at any."""
        return self.exited.variant if self.exited else None

    @property
    def findings(self) -> list[Finding]:
        """Return what the reader of the result must know of how the worker went."""
        findings = []
        if left := self.orphans + (self.exited.orphans if self.exited else 0):
            findings.append(processes_left_running(count=left))
        if self.malformed > (self.done is None):  # a worker that was killed may leave half a line
            findings.append(malformed_event_lines(count=self.malformed))
        return findings

    @property
    def problems(self) -> list[Finding]:
        """Why what was sent is no evidence, the first of each kind."""
        if self._problems:
            return list(self._problems.values())
        if self.exited is None and self.events:
            return [events_unconfirmed(count=self.events)]
        return [events_lost(count=1)] if self.complete and self.done is None else []

    def _is_next(self, number: int) -> bool:
        if self.done is not None:
            self._note(event_after_end())
            return False
        if number < self.events:
            self._note(event_repeated(number=number))
            return False
        if number > self.events:
            self._note(events_lost(count=number - self.events))
        self.events = number + 1
        return True

    def _note(self, problem: Finding) -> None:
        self._problems.setdefault(problem.code, problem)


def failure_of(
    request: RunRequest,
    transcript: WorkerTranscript,
    stopped: Outcome | None,
    error: Exception | None,
    overtime: Finding | None = None,
) -> VariantFailed:
    """The failure that ended the run. `stopped`: by the timeout, for the reason `overtime`, or by
    the user.

    `error`: of the session itself.
    """
    if error is not None:
        return failure_of_whole_run(
            FailureKind.CRASH, Stage.START, worker_not_run(message=str(error))
        )
    exited = transcript.exited
    if exited is None:
        kind = FailureKind.KILLED if stopped is None else FailureKind(stopped.value)
        return failure_of_whole_run(kind, Stage.END, supervisor_gone())
    kind, cause = _cause(exited)
    if cause.code == worker_exited.code and exited.stage == Stage.LOAD and not transcript.events:
        # it sends its first event once it has imported torch
        cause = failed_import_of_torch(code=exited.code)
    if stopped == Outcome.TIMEOUT:
        kind, cause = (FailureKind.TIMEOUT, overtime or timeout(timeout_s=request.timeout_s))
    elif stopped == Outcome.CANCELLED:
        kind, cause = FailureKind.CANCELLED, cancelled()
    subject = subject_of(request.job)
    names = {variant.name for variant in subject.variants} if subject else set()
    return VariantFailed(
        variant=exited.variant if exited.variant in names else None,
        kind=kind,
        stage=exited.stage,
        cause=cause,
        line=_line(exited.trace, subject.path) if subject else None,
        traceback=plain(exited.trace),
    )


def failure_of_whole_run(kind: FailureKind, stage: Stage, cause: Finding) -> VariantFailed:
    return VariantFailed(variant=None, kind=kind, stage=stage, cause=cause)


def _cause(exited: WorkerExited) -> tuple[FailureKind, Finding]:
    if exited.signal in (signal.SIGKILL, signal.SIGXCPU):
        return FailureKind.KILLED, ended_by(exited.signal)
    if exited.signal:
        return FailureKind.CRASH, ended_by(exited.signal)
    if exited.code == PIPE_LOST:
        return FailureKind.CRASH, event_pipe_closed()
    return FailureKind.EXIT, worker_exited(code=exited.code)


def _line(trace: str, path: str) -> int | None:
    """The scenario's innermost line in a faulthandler stack, most recent call first."""
    match = re.search(rf'File "{re.escape(path)}", line (\d{{1,9}})', trace)
    return int(match.group(1)) if match else None
