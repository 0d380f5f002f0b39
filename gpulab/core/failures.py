"""Findings of what runs, stops and fails: processes, events, run files."""

from __future__ import annotations

import signal as signals

from gpulab.core.findings import Finding, Rank, finding
from gpulab.core.units import plural

_WROTE = "the scenario wrote to the lab's event pipe"


@finding("{message}")
def exception(*, message: str) -> None: ...
@finding("the device is in error, and later measurements of this process would be wrong: {message}")
def device_in_error(*, message: str) -> None: ...


@finding()
def timeout(*, timeout_s: float | None) -> str:
    allowed = "the time allowed" if timeout_s is None else f"{timeout_s:g} s"
    return f"no end after {allowed}: raise --timeout, or fix the hang"


@finding(
    "no progress for {silence_s:.0f} s ({during}): fix the hang, or set --timeout if it is only "
    "slow"
)
def no_progress(*, silence_s: float, during: str) -> None: ...
@finding(
    "no end after {taken_s:.0f} s, expected {expected_s:.0f} s: fix the hang, or set --timeout if "
    "it is only slow"
)
def overdue(*, taken_s: float, expected_s: float) -> None: ...
@finding("stopped by the user")
def cancelled() -> None: ...
@finding("killed (SIGKILL): out of memory, a limit (ulimit -t), or another process")
def killed() -> None: ...
@finding("the worker exceeded its CPU time limit: raise it (ulimit -t)")
def cpu_time_spent() -> None: ...


@finding()
def crashed(*, signal: str, meaning: str | None) -> str:
    return f"the worker crashed: {signal} ({meaning or 'unknown signal'})"


def signal_name(number: int) -> str:
    """The name of a signal; real-time ones have none."""
    known = number in set(signals.Signals)
    return signals.Signals(number).name if known else f"signal {number}"


def ended_by(number: int) -> Finding:
    """Why a process ended, by the number of the signal that ended it."""
    if number == signals.SIGKILL:
        return killed()
    if number == signals.SIGXCPU:
        return cpu_time_spent()
    return crashed(signal=signal_name(number), meaning=signals.strsignal(number))


@finding("the scenario closed the lab's event pipe: close only file descriptors that you opened")
def event_pipe_closed() -> None: ...


@finding()
def worker_exited(*, code: int | None) -> str:
    with_code = "without a code" if code is None else f"with code {code}"
    return f"the worker process exited {with_code}: os._exit, or an exit in a native library"


@finding("the worker could not be started: {message}")
def worker_not_run(*, message: str) -> None: ...
@finding("the supervisor exited without a status")
def supervisor_gone() -> None: ...


@finding(rank=Rank.EXPLAINING)
def processes_left_running(*, count: int) -> str:
    left = plural(count, "process")
    return f"the scenario left {left} running; terminated"


@finding(
    "{count:plural event} of the measurement lost: did the scenario write to the lab's event pipe?",
    rank=Rank.INVALIDATING,
)
def events_lost(*, count: int) -> None: ...
@finding(
    "the supervisor exited before confirming {count:plural event} from the worker",
    rank=Rank.INVALIDATING,
)
def events_unconfirmed(*, count: int) -> None: ...
@finding("event {number} of the worker received twice: " + _WROTE, rank=Rank.INVALIDATING)
def event_repeated(*, number: int) -> None: ...
@finding("events received after the worker's last one: " + _WROTE, rank=Rank.INVALIDATING)
def event_after_end() -> None: ...
@finding("inconsistent events, run rejected: {message}", rank=Rank.INVALIDATING)
def events_make_no_sense(*, message: str) -> None: ...
@finding("{count:plural malformed event line} ignored", rank=Rank.EXPLAINING, doubt=True)
def malformed_event_lines(*, count: int) -> None: ...
@finding(
    "unreadable lines of the run file skipped: {lines:list}", rank=Rank.INVALIDATING, doubt=True
)
def garbled_lines(*, lines: list[str]) -> None: ...
@finding(
    "{count:plural event} of unknown type skipped: written by another gpulab", rank=Rank.EXPLAINING
)
def unknown_events(*, count: int) -> None: ...
@finding("the process of the run died before its end", rank=Rank.EXPLAINING, doubt=True)
def runner_died() -> None: ...
@finding(
    "the file holds {count} runs, one written into the other: no result of it holds",
    rank=Rank.INVALIDATING,
    doubt=True,
)
def several_runs(*, count: int) -> None: ...
@finding("the run file ends here: {message}", rank=Rank.INVALIDATING, doubt=True)
def run_file_cut(*, message: str) -> None: ...
