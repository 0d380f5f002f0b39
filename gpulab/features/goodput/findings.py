"""Findings of a profile: what could not be recorded, and how far its goodput may be believed."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.units import seconds

_UNRELIABLE = "the share of computing is unreliable"
_OTHER_WAYS = {
    "second recording": "by the second recording",
    "solo run": "of the step in the solo run",
    "plain step": "of the step in the profiler's process",
    "profiled step": "of the step with the profiler",
    "overhead inside": "where recording takes its time inside of operations",
    "phases": "by the phases between the rounds",
}


@finding("profiling failed: {cause}", rank=Rank.EXPLAINING)
def profiling_ended(*, cause: str) -> None: ...
@finding("profiling failed: {message}", rank=Rank.EXPLAINING)
def profiling_failed(*, message: str) -> None: ...
@finding("profiling failed: {message}", rank=Rank.EXPLAINING)
def profiling_variant_failed(*, message: str) -> None: ...
@finding("the device is in error: nothing more could be profiled", rank=Rank.EXPLAINING)
def profiling_device_in_error() -> None: ...
@finding("its phases could not be recorded: {message}", rank=Rank.EXPLAINING)
def phases_failed(*, message: str) -> None: ...
@finding("a snapshot of the device's memory: {file} (pytorch.org/memory_viz)")
def memory_snapshot(*, file: str) -> None: ...
@finding("the trace could not be written to {file}: {message}", rank=Rank.EXPLAINING)
def trace_not_written(*, file: str, message: str) -> None: ...


@finding("the profiler recorded no work on the device: this is the host's time")
def device_not_recorded() -> None: ...
@finding("two recordings hold different operations: " + _UNRELIABLE)
def recordings_differ() -> None: ...


@finding(
    several="the share of computing is unreliable where what was recorded takes longer than the "
    "step without the profiler:",
    each="{busy_s:seconds} against {step_s:seconds}",
)
def busy_exceeds_step(*, busy_s: float, step_s: float) -> str:
    return (
        f"its recorded kernels and copies take {seconds(busy_s)}, its step without the profiler "
        f"{seconds(step_s)}: {_UNRELIABLE}"
    )


def _two_ways(goodput: float, other: float, by: str) -> str:
    return f"{goodput:.0%}, or {other:.0%} {_OTHER_WAYS.get(by, f'by the {by}')}"


@finding(
    several="the share of computing is unreliable where two ways to measure it differ by more than "
    "5 points:",
    each=_two_ways,
)
def goodput_uncertain(*, goodput: float, other: float, by: str) -> str:
    return f"the share of computing is {_two_ways(goodput, other, by)}: unreliable"


@finding(
    "profiling slowed this step by {overhead:.0%}: corrected for, but how the idle parts divide "
    "is approximate",
    several="profiling slowed a step (corrected for, but how the idle parts divide is "
    "approximate):",
    each="by {overhead:.0%}",
)
def profiler_overhead(*, overhead: float) -> None: ...
