"""Why a run did not end well: from its supervisor's report, or from the lack of one."""

from __future__ import annotations

import re
import signal

from gpulab.protocol.events import PIPE_LOST, VariantFailed, WorkerExited
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import RunRequest, subject_of
from gpulab.protocol.statuses import FailureKind, Outcome, Stage
from gpulab.protocol.text import plain
from gpulab.session.worker_transcript import WorkerTranscript


def failure_of(
    request: RunRequest,
    transcript: WorkerTranscript,
    stopped: Outcome | None,
    error: Exception | None,
    overtime: Finding | None = None,
) -> VariantFailed:
    """The failure that ended the run. `stopped`: by the timeout, for the reason `overtime`, or by the user.

    `error`: of the session itself.
    """
    if error is not None:
        return failure_of_whole_run(FailureKind.CRASH, Stage.START, finding("worker_not_run", message=str(error)))
    if transcript.exited is None:
        kind = FailureKind.KILLED if stopped is None else FailureKind(stopped.value)
        return failure_of_whole_run(kind, Stage.END, finding("supervisor_gone"))
    return _of_exit(request, transcript.exited, stopped, overtime)


def failure_of_whole_run(kind: FailureKind, stage: Stage, cause: Finding) -> VariantFailed:
    return VariantFailed(variant=None, kind=kind, stage=stage, cause=cause)


def _of_exit(
    request: RunRequest, exited: WorkerExited, stopped: Outcome | None, overtime: Finding | None
) -> VariantFailed:
    kind, cause = _cause(exited)
    if stopped == Outcome.TIMEOUT:
        kind, cause = FailureKind.TIMEOUT, overtime or finding("timeout", timeout_s=request.timeout_s)
    elif stopped == Outcome.CANCELLED:
        kind, cause = FailureKind.CANCELLED, finding("cancelled")
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


def _cause(exited: WorkerExited) -> tuple[FailureKind, Finding]:
    if exited.signal == signal.SIGKILL:
        return FailureKind.KILLED, finding("killed")
    if exited.signal == signal.SIGXCPU:
        return FailureKind.KILLED, finding("cpu_time_spent")
    if exited.signal:
        name = signal.Signals(exited.signal).name if exited.signal in set(signal.Signals) else str(exited.signal)
        return FailureKind.CRASH, finding("crashed", signal=name, meaning=signal.strsignal(exited.signal))
    if exited.code == PIPE_LOST:
        return FailureKind.CRASH, finding("event_pipe_closed")
    return FailureKind.EXIT, finding("worker_exited", code=exited.code)


def _line(trace: str, path: str) -> int | None:
    """The scenario's innermost line in a faulthandler stack, most recent call first."""
    match = re.search(rf'File "{re.escape(path)}", line (\d{{1,9}})', trace)
    return int(match.group(1)) if match else None
