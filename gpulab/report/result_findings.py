"""Findings of a result: what weakens it and what explains it."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.core.estimate import value_of
from gpulab.core.events import Checked, FindingMade, OtherClock, SoloRun, WarmedUp
from gpulab.core.findings import Finding
from gpulab.core.jobs import TimeFunctions, subject_of
from gpulab.core.statuses import Cache, Clock, Relation, Verdict
from gpulab.features.goodput.events import Profiled, by_inputs
from gpulab.features.telemetry.findings import (
    clocks_not_checked,
    clocks_slowed,
    gpu_shared,
    power_capped,
    processes_not_checked,
    telemetry_ended_early,
)
from gpulab.features.telemetry.report import TelemetryState
from gpulab.report.feature import Draft
from gpulab.report.findings import (
    builds_differ,
    checked_in_its_own_run,
    first_step_sets_up,
    fixes_compound,
    fixes_multiply,
    fixes_overlap,
    lower_precision,
    no_effect,
    off_the_cpu,
    page_faults,
    plain_functions,
    same_operations,
    solo_run_differs,
    warm_up_drifts,
)
from gpulab.report.report import Together, VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState, VariantState
from gpulab.stats.comparison import differ, of_another_process
from gpulab.stats.statistics import FEWEST, Interval

_TOGETHER = {
    Relation.OVERLAP: fixes_overlap,
    Relation.COMPOUND: fixes_compound,
    Relation.MULTIPLY: fixes_multiply,
}
_BUSY = 0.1
_PAGE = 4096
_SETTING_UP_S, _SETTING_UP = 0.5, 100
"""A first step as long as this, and as many times the median, compiled something or set it up."""


def weakening_findings(draft: Draft) -> list[Finding]:
    """Return the findings that weaken the result: those of the run first, then of each variant."""
    state = draft.state
    samples = draft.samples
    weakening = [event.finding for event in state.all(FindingMade) if not event.explains]
    weakening += _disturbances(state, samples)
    functions = isinstance(state.job, TimeFunctions)
    if functions:
        weakening.append(plain_functions())
    checked = (variant.last(Checked) for variant in state.variants.values())
    tolerance = next((event.tolerance for event in checked if event), None)
    for variant, report in zip(state.variants.values(), draft.variants, strict=True):
        weakening += _variant_findings(state, variant, tolerance, functions=functions)
        weakening += _solo_differs(state, samples, variant, report)
    return weakening


def explaining_findings(
    draft: Draft, together: Together | None, no_effect_reason: str
) -> list[Finding]:
    """Return findings that explain the result: why no effect, set-up costs, and page faults."""
    state = draft.state
    variants = draft.variants
    control = draft.control
    explanations = [event.finding for event in state.all(FindingMade) if event.explains]
    subject = subject_of(state.request.job) if state.request else None
    if subject and subject.hides:
        explanations.append(subject.hides)
    baseline = variants[0].name if variants else None
    for comparison in draft.comparisons:
        no_gain = comparison.verdict == Verdict.SAME and comparison.against == baseline
        if no_effect_reason and no_gain:
            explanations.append(no_effect(comparison.variant, reason=no_effect_reason))
    for comparison in draft.comparisons:
        if comparison.verdict not in (Verdict.SAME, Verdict.INCONCLUSIVE, Verdict.SLOWER):
            continue
        operations = _operations(state, comparison.variant)
        if operations and operations == _operations(state, comparison.against):
            explanations.append(same_operations(comparison.variant, against=comparison.against))
    functions = isinstance(state.job, TimeFunctions)
    if functions and control and control.verdict in (Verdict.FASTER, Verdict.SLOWER):
        explanations.append(builds_differ(speedup=value_of(control.speedup)))
    if together:
        explanations.append(
            _TOGETHER[together.relation](
                product=together.product,
                speedup=together.speedup.value,
                low=together.speedup.low,
                high=together.speedup.high,
            )
        )
    for variant in variants:
        step_by_step = variant.get("first_steps") is not None
        if variant.time_s is None or step_by_step:
            continue
        first_step_s = variant.first_step_s or 0.0
        if first_step_s > max(_SETTING_UP_S, _SETTING_UP * variant.time_s.value):
            explanations.append(first_step_sets_up(variant.name, first_step_s=first_step_s))
    for variant in variants:
        faults = (variant.faults_per_block or 0) / (variant.steps_per_block or 1)
        if faults >= 256:
            explanations.append(page_faults(variant.name, faults=faults, bytes=faults * _PAGE))
    return explanations


def _disturbances(state: RunState, samples: SampleView) -> list[Finding]:
    """Problems of the device that telemetry showed: throttling, sharing, missing readings."""
    telemetry = state.part(TelemetryState)
    disturbances = list(telemetry.problems.values())
    if telemetry.lost:
        disturbances.append(telemetry_ended_early.caused_by(telemetry.lost))
    if telemetry.started and telemetry.started.gpu:
        if reason := telemetry.unsupported.get("reasons"):
            disturbances.append(clocks_not_checked(cause=reason))
        if reason := telemetry.unsupported.get("processes"):
            disturbances.append(processes_not_checked(cause=reason))
    blocks = state.samples.blocks
    for (code, names), dropped in samples.dropped_blocks().items():
        if code == clocks_slowed.code:
            cause = clocks_slowed(dropped=dropped, blocks=blocks, reasons=list(names))
        else:
            cause = gpu_shared(dropped=dropped, blocks=blocks, processes=list(names))
        disturbances.append(cause)
    if telemetry.power_capped:
        readings = telemetry.while_measuring
        disturbances.append(power_capped(capped=telemetry.power_capped, readings=readings))
    return disturbances


def _operations(state: RunState, name: str) -> set[tuple[str, str, float]] | None:
    """The operations in the profile of a variant: name, shapes, calls per step."""
    variant = state.variants.get(name)
    profiled = variant.last(Profiled) if variant else None
    if profiled is None or not profiled.repeatable:
        return None
    rows = [row for row in by_inputs(profiled.operations) if row.rows == 1]
    return {(row.name, row.shapes, round(row.calls / profiled.steps, 2)) for row in rows}


def _variant_findings(
    state: RunState, variant: VariantState, tolerance: float | None, *, functions: bool
) -> list[Finding]:
    """`tolerance` is the relative error that the baseline's dtype allows."""
    weakening = []
    name = variant.name
    warmed = variant.last(WarmedUp)
    job = state.timed_job
    times_count = job is not None and not job.smoke
    if warmed and warmed.drifting and times_count:
        weakening.append(warm_up_drifts(name, drift=warmed.drift))
    # on a GPU the host waits for the device, and may sleep; a rank waits for the others
    on_cpu = job is not None and job.device == "cpu" and not job.ranks
    if on_cpu and times_count and variant.contention is not None and variant.contention > _BUSY:
        weakening.append(off_the_cpu(name, share=variant.contention))
    unchecked = variant.unchecked
    if unchecked and not functions and unchecked.code != checked_in_its_own_run.code:
        weakening.append(replace(unchecked, variant=name))
    checked = variant.last(Checked)
    if checked and checked.tolerance and tolerance and checked.tolerance > tolerance:
        weakening.append(lower_precision(name, allowed=checked.tolerance, baseline=tolerance))
    return weakening


def _solo_differs(
    state: RunState, samples: SampleView, variant: VariantState, report: VariantReport
) -> list[Finding]:
    """Return whether the step time in a solo run differs from the interleaved one: interleaved
    variants share one power state and one cache.

    A solo run is of one process: it differs where it lies outside the prediction interval of
    another process.
    """
    interleaved_s = report.clocks_s.get(Clock.WALL)
    solo = variant.last(SoloRun)
    job = state.timed_job
    # most of a cold step is flushing the cache
    if solo is None or not interleaved_s or job is None or job.cache == Cache.COLD:
        return []
    times: list[float] = []
    if job.clock == Clock.WALL:
        times = [time * variant.items for time in samples.units((variant.name,))]
    elif wall := variant.last(OtherClock, Clock.WALL):
        times = wall.times_s
    if len(times) < FEWEST:
        return []
    alone = Interval(solo.time_s, solo.low_s or solo.time_s, solo.high_s or solo.time_s, 0)
    if not differ(alone, of_another_process(times)):
        return []
    change = solo.time_s / interleaved_s - 1
    return [solo_run_differs(variant.name, change=change, seconds=solo.ended - solo.started)]
