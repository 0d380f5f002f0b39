"""From the windows of a variant to its goodput, as reports show it."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.analysis.roofline import Point
from gpulab.protocol.ceiling import LINKS
from gpulab.protocol.events import Phases, Profiled
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Measure
from gpulab.protocol.operation import Operation
from gpulab.protocol.partition import USEFUL
from gpulab.protocol.statuses import Cache
from gpulab.report.goodput.goodput_report import GoodputReport
from gpulab.report.goodput.step_goodput import TOLERANCE, StepGoodput, step_goodput
from gpulab.report.report import Time
from gpulab.report.state import RunState
from gpulab.report.variant_state import VariantState

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
    step = step_goodput(state, variant, profiled, time)
    partition = profiled.partition
    # The step's least time by its roofs; the fraction of the roof is this over the measured time.
    cold = job is not None and job.cache == Cache.COLD  # it was profiled with warm caches
    ideal_s = point.fraction * time.median if point and time and not cold else None
    on_link = isinstance(job, Measure) and job.roof in LINKS  # which no useful time is spent on
    useful_s = step.seconds.get(USEFUL, 0.0)
    right = variant.checked is not None and variant.checked.ok
    unreliable = _why_unreliable(profiled, step)
    overhead = [finding("profiler_overhead", profiled.variant, overhead=step.overhead)]
    reasons = unreliable or (overhead if step.overhead > _MOST_OVERHEAD else [])
    return GoodputReport(
        phases=phases,
        running=running,
        waiting=waiting,
        goodput=step.goodput,
        partition={name: seconds / step.step_s for name, seconds in step.seconds.items()},
        seconds=step.seconds,
        step_s=step.step_s,
        step_source=step.source,
        marked=partition.marked,
        efficiency=ideal_s / useful_s if ideal_s and useful_s and not on_link else None,
        product=ideal_s / step.step_s if ideal_s else None,
        hidden=max(0.0, 1 - partition.seconds["copies"] / partition.copied_s) if partition.copied_s else None,
        items_per_s=variant.items / time.median if variant.built and time and right else None,
        overhead=step.overhead,
        uncertainty=step.uncertainty,
        reliable=not unreliable,
        accurate=not reasons,
        reasons=reasons,
        operations=_operations(profiled, step),
        steps=profiled.steps,
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


def _operations(profiled: Profiled, step: StepGoodput) -> list[Operation]:
    """Of one step. A kernel takes as long without the profiler; an operation of the host its share of the step."""
    recorded_s = (profiled.repeated or profiled.partition).window_s / profiled.steps
    rows = []
    for row in profiled.operations[:_MOST_ROWS]:
        self_s, share = row.self_s / profiled.steps, row.share
        if row.on_device:
            share = self_s / step.step_s
        elif recorded_s:
            self_s *= step.step_s / recorded_s
        rows.append(replace(row, calls=row.calls / profiled.steps, self_s=self_s, share=share))
    return rows


def _why_unreliable(profiled: Profiled, step: StepGoodput) -> list[Finding]:
    """Why the goodput is not certain within the tolerance."""
    name = profiled.variant
    if step.host_only:
        return [finding("device_not_recorded", name)]
    if not profiled.repeatable:
        return [finding("recordings_differ", name)]
    if step.busy_s > step.step_s * (1 + TOLERANCE):
        return [finding("busy_exceeds_step", name, busy_s=step.busy_s, step_s=step.step_s)]
    if step.uncertainty <= TOLERANCE or step.farthest is None:
        return []
    other, by = step.farthest
    return [finding("goodput_uncertain", name, goodput=step.goodput, other=other, by=by)]
