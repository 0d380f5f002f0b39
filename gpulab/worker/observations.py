"""What each process looks at beside the rounds, on the builds that were measured: another clock, and the phases."""

from __future__ import annotations

from math import ceil

from gpulab.protocol.events import OtherClock, Phases
from gpulab.protocol.statuses import Clock, Shows
from gpulab.scenario import CONTROL
from gpulab.worker.building.build import Build
from gpulab.worker.context import WorkerContext
from gpulab.worker.process.exception_text import first_line
from gpulab.worker.timing.candidate import Candidate
from gpulab.worker.timing.device_clock import DeviceClock
from gpulab.worker.timing.waiting import returns_later

_PHASES_S = 0.05
_SLOW_STEP_S = 0.25
_MOST_QUEUED = 100
"""Steps of a block by the clock that does not wait: a queue that is full makes the host wait after all."""


def observe(context: WorkerContext, candidate: Candidate) -> None:
    """Slow steps, of which a process takes few, in the first one alone. Raises what a step raises."""
    build = candidate.build
    first = not context.number
    if build is None or (candidate.step_s >= _SLOW_STEP_S and not (first or isinstance(context.clock, DeviceClock))):
        return
    _time_by_other_clock(context, candidate, build)
    if context.shows == Shows.CLOCKS and candidate.name != CONTROL:
        _time_held_wrong(context, candidate, build)
    _record_phases(context, candidate, build)


def _time_by_other_clock(context: WorkerContext, candidate: Candidate, build: Build) -> None:
    """One block by the clock that the verdict does not take."""
    other = context.other_clock
    if other is None or candidate.name == CONTROL or (isinstance(other, DeviceClock) and returns_later(build)):
        return
    steps = min(candidate.steps, ceil(other.block_s / candidate.step_s))  # more may not fit into a queue
    time_s = other.block(build, steps, lead_in=candidate.lead_in).time_s
    exposed = isinstance(other, DeviceClock) and other.exposes(build)
    context.reporter.channel.emit(
        OtherClock(variant=candidate.name, clock=Clock(other.name), times_s=[time_s], exposed=exposed)
    )


def _time_held_wrong(context: WorkerContext, candidate: Candidate, build: Build) -> None:
    """One block by the host's clock as it is also held: where the clocks themselves are the lesson."""
    steps = min(candidate.steps, _MOST_QUEUED)
    times = context.wall_clock.held_wrong(build, steps, candidate.lead_in)
    for clock, time_s in zip((Clock.RETURN, Clock.STEP), times, strict=True):
        context.reporter.channel.emit(OtherClock(variant=candidate.name, clock=clock, times_s=[time_s]))


def _record_phases(context: WorkerContext, candidate: Candidate, build: Build) -> None:
    """One window with phases on, where the variant has any."""
    if candidate.name not in context.with_phases:
        return
    steps = max(1, min(candidate.steps, int(_PHASES_S / candidate.step_s)))
    try:
        times = context.builder.phase_times(build, steps)
    except BaseException as error:  # it is only an observation: what was measured stays
        context.with_phases.discard(candidate.name)
        context.reporter.notice("phases_failed", candidate.name, message=first_line(error))
    else:
        running_s = times.cpu_s if context.device.type == "cpu" else {}
        context.reporter.channel.emit(
            Phases(variant=candidate.name, steps=steps, seconds=times.wall_s, running_s=running_s)
        )
