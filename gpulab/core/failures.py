"""Findings of what runs, stops and fails: processes, events, run files."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding, plain
from gpulab.core.units import plural

_WROTE = "the scenario wrote to the lab's event pipe"


@finding()
def exception(*, message: str) -> str:
    return message


@finding()
def device_in_error(*, message: str) -> str:
    return (
        f"the device is in error, and later measurements of this process would be wrong: {message}"
    )


@finding()
def timeout(*, timeout_s: float | None) -> str:
    allowed = "the time allowed" if timeout_s is None else f"{timeout_s:g} s"
    return f"no end after {allowed}: raise --timeout, or fix the hang"


@finding()
def no_progress(*, silence_s: float, during: str) -> str:
    return (
        f"no progress for {silence_s:.0f} s ({during}): fix the hang, or set --timeout if it is "
        "only slow"
    )


@finding()
def overdue(*, taken_s: float, expected_s: float) -> str:
    return (
        f"no end after {taken_s:.0f} s, expected {expected_s:.0f} s: fix the hang, or set "
        "--timeout if it is only slow"
    )


cancelled = plain("cancelled", "stopped by the user")
killed = plain("killed", "killed (SIGKILL): out of memory, a limit (ulimit -t), or another process")
cpu_time_spent = plain(
    "cpu_time_spent", "the worker exceeded its CPU time limit: raise it (ulimit -t)"
)


@finding()
def crashed(*, signal: str, meaning: str | None) -> str:
    return f"the worker crashed: {signal} ({meaning or 'unknown signal'})"


event_pipe_closed = plain(
    "event_pipe_closed",
    "the scenario closed the lab's event pipe: close only file descriptors that you opened",
)


@finding()
def worker_exited(*, code: int | None) -> str:
    with_code = "without a code" if code is None else f"with code {code}"
    return f"the worker process exited {with_code}: os._exit, or an exit in a native library"


@finding()
def worker_not_run(*, message: str) -> str:
    return f"the worker could not be started: {message}"


supervisor_gone = plain("supervisor_gone", "the supervisor exited without a status")


@finding(rank=Rank.EXPLAINING)
def processes_left_running(*, count: int) -> str:
    left = plural(count, "process", "processes")
    return f"the scenario left {left} running; terminated"


@finding(rank=Rank.INVALIDATING)
def lab_functions_replaced(*, names: list[str], count: int) -> str:
    return (
        f"the scenario replaced {plural(count, 'function')} that the lab measures or checks with: "
        f"{', '.join(names)}"
    )


@finding(rank=Rank.INVALIDATING)
def events_lost(*, count: int) -> str:
    return (
        f"{plural(count, 'event')} of the measurement lost, or an event number forged: did the "
        "scenario write to the lab's event pipe?"
    )


@finding(rank=Rank.INVALIDATING)
def events_forged(*, count: int) -> str:
    return f"{plural(count, 'event')} received that the worker never sent: {_WROTE}"


@finding(rank=Rank.INVALIDATING)
def events_unconfirmed(*, count: int) -> str:
    return f"the supervisor exited before confirming {plural(count, 'event')} from the worker"


@finding(rank=Rank.INVALIDATING)
def event_repeated(*, number: int) -> str:
    return f"event {number} of the worker received twice, one of them forged: {_WROTE}"


event_after_end = plain(
    "event_after_end",
    f"events received after the worker's last one: {_WROTE}",
    rank=Rank.INVALIDATING,
)


@finding(rank=Rank.INVALIDATING)
def event_not_allowed(*, type: str) -> str:
    return f"event received that no worker of this job sends ({type}): {_WROTE}"


@finding(rank=Rank.INVALIDATING)
def events_make_no_sense(*, message: str) -> str:
    return f"inconsistent events, run rejected: {message}"


@finding(rank=Rank.EXPLAINING, doubt=True)
def malformed_event_lines(*, count: int) -> str:
    return f"{plural(count, 'malformed event line')} ignored"


@finding(rank=Rank.INVALIDATING, doubt=True)
def garbled_lines(*, lines: list[str]) -> str:
    return f"unreadable lines of the run file skipped: {', '.join(lines)}"


@finding(rank=Rank.EXPLAINING)
def unknown_events(*, count: int) -> str:
    return f"{plural(count, 'event')} of unknown type skipped: written by another gpulab"


@finding(rank=Rank.INVALIDATING, doubt=True)
def run_file_cut(*, message: str) -> str:
    return f"the run file ends here: {message}"
