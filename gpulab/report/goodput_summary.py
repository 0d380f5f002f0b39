"""From the windows of a variant to its goodput, as reports show it."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.analysis.roofline import Point
from gpulab.protocol.ceiling import LINKS
from gpulab.protocol.events import Phases, Profiled
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Measure
from gpulab.protocol.partition import USEFUL
from gpulab.protocol.statuses import Cache, Clock
from gpulab.report.goodput_report import GoodputReport
from gpulab.report.report import Time
from gpulab.report.state import RunState, VariantState

_MOST_OVERHEAD = 0.1
_MOST_ROWS = 40
_WAITS = 0.5
"""A phase whose thread runs for less of its time than this waits, or was preempted."""


def goodput_of(state: RunState, variant: VariantState, time: Time | None, point: Point | None) -> GoodputReport | None:
    """None where neither phases nor a profiler recorded anything."""
    phases, running = _phases(variant.phases)
    waiting = [name for name, share in running.items() if share < _WAITS]
    profiled, job = variant.profiled, state.timed_job
    if profiled is None:
        return GoodputReport(phases=phases, running=running, waiting=waiting) if phases else None
    partition, steps = profiled.partition, profiled.steps
    # The step's least time by its roofs; the fraction of the roof is this over the measured time.
    cold = job is not None and job.cache == Cache.COLD  # it was profiled with warm caches
    ideal_s = point.fraction * time.median if point and time and not cold else None
    on_link = isinstance(job, Measure) and job.roof in LINKS  # which no useful time is spent on
    useful_s = partition.seconds.get(USEFUL, 0.0) / steps
    on_gpu = state.device is not None and state.device.on_gpu
    host_only = on_gpu and not partition.on_device
    right = variant.checked is not None and variant.checked.ok
    plain_s = _plain_s(state, profiled, time)
    overhead = profiled.profiled_s / plain_s - 1 if plain_s else 0.0
    reasons = _why_unreliable(profiled, overhead, host_only=host_only)
    return GoodputReport(
        phases=phases,
        running=running,
        waiting=waiting,
        goodput=partition.goodput,
        partition=partition.shares,
        marked=partition.marked,
        efficiency=ideal_s / useful_s if ideal_s and useful_s and not on_link else None,
        product=ideal_s * steps / partition.window_s if ideal_s else None,
        hidden=max(0.0, 1 - partition.seconds["copies"] / partition.copied_s) if partition.copied_s else None,
        items_per_s=variant.items / time.median if variant.built and time and right else None,
        overhead=overhead,
        reliable=profiled.repeatable and not host_only,
        accurate=not reasons,
        reasons=reasons,
        operations=[
            replace(row, calls=row.calls / steps, self_s=row.self_s / steps) for row in profiled.operations[:_MOST_ROWS]
        ],
        steps=steps,
        peak_bytes=profiled.peak_bytes,
        trace=profiled.trace,
    )


def _phases(phases: Phases | None) -> tuple[dict[str, float], dict[str, float]]:
    """The share of each phase, and how much of it the thread ran."""
    total_s = sum(phases.seconds.values()) if phases else 0.0
    if phases is None or not total_s:
        return {}, {}
    running = {
        name: running_s / phases.seconds[name]
        for name, running_s in phases.running_s.items()
        if phases.seconds.get(name)
    }
    return {name: seconds / total_s for name, seconds in phases.seconds.items()}, running


def _plain_s(state: RunState, profiled: Profiled, time: Time | None) -> float:
    """Seconds of a step without the profiler: of its own process, or of the run's where that timed the same.

    CUPTI, once started, stays attached to a process and costs each step 10 to 20 %.
    """
    job, device = state.timed_job, state.device
    if time is None or job is None or device is None or not device.on_gpu:
        return profiled.plain_s
    alike = job.clock == Clock.WALL and job.cache == Cache.HOT
    return min(profiled.plain_s, time.median) if alike else profiled.plain_s


def _why_unreliable(profiled: Profiled, overhead: float, *, host_only: bool) -> list[Finding]:
    """Why a partition is not accurate as it stands."""
    name = profiled.variant
    reasons = [finding("device_not_recorded", name)] if host_only else []
    reasons += [] if profiled.repeatable else [finding("recordings_differ", name)]
    reasons += [finding("profiler_overhead", name, overhead=overhead)] if overhead > _MOST_OVERHEAD else []
    return reasons
