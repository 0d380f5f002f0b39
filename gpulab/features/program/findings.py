"""Findings of a program that is followed: how it ended, and why there are no steps."""

from __future__ import annotations

from shlex import quote

from gpulab.core.failures import signal_name
from gpulab.core.findings import Rank, finding


@finding("it exited with code {code}")
def program_exited(*, code: int) -> None: ...


@finding()
def program_killed(*, signal: int) -> str:
    return f"it was ended by {signal_name(signal)}"


@finding("no end after {timeout_s:g} s (--timeout): it and its processes were killed")
def program_timed_out(*, timeout_s: float) -> None: ...
@finding("it could not be started: {message}")
def program_not_started(*, message: str) -> None: ...


@finding(
    "no steps: no Python was started that reads PYTHONPATH (another language, or python -I, -E "
    "or -S)",
    rank=Rank.EXPLAINING,
)
def no_python() -> None: ...
@finding(
    "no steps: none came to its end; steps are those of an optimizer, of torch modules outside of "
    "what torch compiles, of jax.profiler.StepTraceAnnotation, or calls of gpulab.step()",
    rank=Rank.EXPLAINING,
)
def no_step() -> None: ...
@finding(
    "no steps: Python {version} is older than 3.9, the oldest that is followed",
    rank=Rank.EXPLAINING,
)
def old_python(*, version: str) -> None: ...
@finding(
    "no profile: recordings would have taken over 3 % of its steps; --profile on does not wait",
    rank=Rank.EXPLAINING,
)
def no_recording() -> None: ...
@finding("it ran under nsys: its times include what that adds", rank=Rank.EXPLAINING)
def under_nsys() -> None: ...
@finding(
    "not recorded to the end: the program uses a profiler itself, or a JAX before 0.8",
    rank=Rank.EXPLAINING,
)
def recorded_elsewhere() -> None: ...
@finding(rank=Rank.EXPLAINING)
def own_trace(*, count: int, file: str) -> str:
    traces = "a trace" if count == 1 else f"{count} traces"
    return f"the program wrote {traces} of its own: gpulab --why {quote(file)}"


@finding(
    "no profile: its steps run in another thread than the one that imported torch",
    rank=Rank.EXPLAINING,
)
def torch_of_another_thread() -> None: ...
@finding("its recordings cannot be read: {message}", rank=Rank.EXPLAINING)
def recordings_unreadable(*, message: str) -> None: ...
@finding(
    "child processes outlive it ({count} still {verb}): not profiled after its end",
    rank=Rank.EXPLAINING,
)
def processes_go_on(*, count: int, verb: str) -> None: ...
