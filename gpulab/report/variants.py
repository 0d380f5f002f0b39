"""One variant of a report: its status, times, rates, and what was recorded of it."""

from __future__ import annotations

from itertools import takewhile
from statistics import median

from gpulab.core.finding import Finding, finding
from gpulab.core.statuses import Cache, Clock, FailureKind, Status
from gpulab.features.first_steps.analysis import Ends, curve_of, over_processes
from gpulab.features.goodput.report import goodput_of
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.report import cause_and_point
from gpulab.features.telemetry.fields import reason_letters
from gpulab.report.report import CurveReport, MemoryReport, SoloReport, Time, VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState, VariantState

_SETTLED = 1.05


def variant_report(
    state: RunState,
    variant: VariantState,
    samples: SampleView,
    roofs: RoofSet | None,
    *,
    under_way: bool,
) -> VariantReport:
    """`under_way`: nothing is final."""
    built, failure = variant.built, variant.failure
    ended = failure or variant.out_of_memory
    status, reason = _final_status(state, variant, under_way=under_way)
    device = state.device
    one_thread = device is not None and device.kind == "cpu" and device.threads == 1
    curve = _curve(variant)
    time = curve.settled_s if curve else _time(variant, status, samples)
    clocks = _clocks(state, variant, time)
    cause, point = cause_and_point(state, variant, roofs, time, clocks)
    by_host = bool(variant.blocks and state.timed_job and state.timed_job.clock == Clock.WALL)
    return VariantReport(
        name=variant.info.name,
        status=status,
        reason=reason,
        summary=variant.info.summary,
        claim=variant.info.claim,
        unchecked=variant.unchecked,
        items=built.items if built else None,
        bytes=built.bytes if built else None,
        flops=built.flops if built else None,
        dtype=built.dtype if built else None,
        time_s=time,
        clocks=clocks,
        bytes_per_s=_rate(built.bytes if built else None, time.median if time else None),
        flops_per_s=_rate(built.flops if built else None, time.median if time else None),
        items_per_s=variant.items / time.median if time and time.median else None,
        steps_per_block=variant.calibrated.steps_per_block if variant.calibrated else None,
        contention=variant.contention if one_thread else None,
        faults_per_block=variant.faults / variant.blocks if by_host else None,
        switches_per_block=variant.switches / variant.blocks if by_host else None,
        sm_mhz=variant.sm_mhz / variant.blocks if variant.sm_mhz and variant.blocks else None,
        build_s=built.build_s if built else None,
        first_step_s=built.first_step_s if built else None,
        warm_up_s=_warm_up_s(variant),
        drifting=variant.warmed.drifting if variant.warmed else None,
        error=variant.checked.error if variant.checked else None,
        solo_run=_solo_run(state, variant),
        operations=variant.counted.operations if variant.counted else None,
        flops_counted=(variant.counted.flops or None) if variant.counted else None,
        cause=cause,
        roofline=point,
        goodput=goodput_of(state, variant, time, point),
        memory=_memory(variant),
        first_steps=curve,
        kernels=variant.kernels,
        tuning=variant.tuned.choice.tuning if variant.tuned else None,
        tuning_cached=variant.tuned.cached if variant.tuned else False,
        stage=ended.stage if ended else None,
        line=failure.line if failure else None,
    )


def _final_status(
    state: RunState, variant: VariantState, *, under_way: bool
) -> tuple[Status, Finding | None]:
    """Once a run is over, no variant is pending any more."""
    if variant.status != Status.PENDING or under_way:
        return variant.status, variant.reason
    if variant.info.name in state.samples.measured or variant.first_steps:
        return Status.OK, None
    if variant.failure and variant.failure.kind == FailureKind.TIMEOUT:
        return Status.FAILED, variant.failure.cause
    return Status.SKIPPED, finding("ended_before", variant.info.name)


def _time(variant: VariantState, status: Status, samples: SampleView) -> Time | None:
    """Seconds per step with their interval, as far as they are known."""
    if status not in (Status.OK, Status.PENDING):
        return None
    name, items = variant.info.name, variant.items
    interval = samples.interval((name,))
    if interval is not None:
        return Time(
            median=interval.median * items, low=interval.low * items, high=interval.high * items
        )
    rough = samples.rough(name)
    if rough is not None:
        return Time(median=rough * items)
    return Time(median=variant.calibrated.step_s) if variant.calibrated else None


def _warm_up_s(variant: VariantState) -> float | None:
    """What the blocks of its warm-up took longer than those that it settled at, up to the first
    that is as short.
    """
    if variant.warmed is None or variant.calibrated is None:
        return None
    times_s = variant.warmed.times_s
    settled_s = median(times_s[-(len(times_s) // 3) :]) if times_s else 0.0
    slower = takewhile(lambda time_s: time_s > settled_s * _SETTLED, times_s)
    steps = variant.warmed.steps or variant.calibrated.steps_per_block
    return steps * sum(time_s - settled_s for time_s in slower)


def _clocks(state: RunState, variant: VariantState, time: Time | None) -> dict[str, float]:
    job = state.timed_job
    clocks = {} if time is None or job is None else {job.clock.value: time.median}
    for clock, event in variant.other_clocks.items():
        if event.times_s:
            clocks[clock.value] = median(event.times_s)
    return clocks


def _curve(variant: VariantState) -> CurveReport | None:
    events = variant.first_steps
    curve = curve_of([event.times_s for event in events])
    if curve is None:
        return None
    return CurveReport(
        processes=len(events),
        build_s=_over(over_processes([event.build_s for event in events])),
        steps=[_over(step) for step in curve.steps],
        settled_s=_over(curve.settled),
        settled_after=curve.settled_after,
        excess_s=_over(curve.excess),
    )


def _over(ends: Ends) -> Time:
    return Time(median=ends.median, low=ends.low, high=ends.high)


def _memory(variant: VariantState) -> MemoryReport | None:
    used = variant.memory
    if used is None:
        return None
    return MemoryReport(held=used.held_bytes, peak=used.peak_bytes, reserved=used.reserved_bytes)


def _solo_run(state: RunState, variant: VariantState) -> SoloReport | None:
    solo, built = variant.solo_run, variant.built
    means = state.telemetry.solo_means(variant.info.name)
    if solo is None or means is None:
        return None
    cold = state.timed_job is not None and state.timed_job.cache == Cache.COLD
    return SoloReport(
        seconds=solo.ended - solo.started,
        readings=means.readings,
        time_s=solo.time_s,
        low_s=solo.low_s,
        high_s=solo.high_s,
        items_per_s=variant.items / solo.time_s,
        energy_j=None if means.energy_j is None or cold else means.energy_j / variant.items,
        means=means.means,
        clocks=reason_letters(means.reasons),
        bytes_per_s=_rate(built.bytes if built else None, solo.time_s),
        flops_per_s=_rate(built.flops if built else None, solo.time_s),
    )


def _rate(amount: int | None, seconds: float | None) -> float | None:
    return amount / seconds if amount and seconds else None
