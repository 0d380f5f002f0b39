"""One variant of a report: its status, times, rates, and what was recorded of it."""

from __future__ import annotations

from itertools import takewhile
from statistics import median
from typing import Any

from gpulab.core.estimate import Estimate
from gpulab.core.events import (
    Built,
    Calibrated,
    Checked,
    Counted,
    FirstSteps,
    OtherClock,
    OutOfMemory,
    ProgramEnded,
    WarmedUp,
)
from gpulab.core.findings import Finding
from gpulab.core.statuses import Clock, FailureKind, Status
from gpulab.report.feature import Draft
from gpulab.report.findings import ended_before
from gpulab.report.report import VariantReport, fields_of
from gpulab.report.state import RunState, VariantState

_SETTLED = 1.05


def variant_report(draft: Draft, variant: VariantState) -> VariantReport:
    """The part of the core, then the part of each feature."""
    state = draft.state
    status, reason = _final_status(draft, variant)
    time = _time(draft, variant, status)
    seconds = time.value if time else None
    built = variant.last(Built)
    counted = variant.last(Counted)
    report = VariantReport(
        **fields_of(variant.info, "name", "summary", "claim"),
        **fields_of(built, "items", "bytes", "flops", "dtype", "build_s", "first_step_s"),
        **fields_of(variant.last(Calibrated), "steps_per_block"),
        **fields_of(variant.last(WarmedUp), "drifting"),
        **fields_of(variant.last(Checked), "error", "tolerance"),
        **fields_of(counted, "operations", "operand_bytes"),
        **fields_of(variant.failure or variant.last(OutOfMemory), "stage", "line"),
        **_block_fields(state, variant),
        parts=tuple(each.variant_part() for each in draft.features if each.variant_part),
        status=status,
        reason=reason,
        unchecked=variant.unchecked,
        time_s=time,
        clocks_s=_clocks_s(state, variant, time),
        bytes_per_s=rate(getattr(built, "bytes", None), seconds),
        flops_per_s=rate(getattr(built, "flops", None), seconds),
        items_per_s=rate(variant.items, seconds),
        warm_up_s=_warm_up_s(variant),
        flops_counted=(counted and counted.flops) or None,
    )
    for feature in draft.features:
        report = feature.add_to_variant(draft, variant, report)
    return report


def _block_fields(state: RunState, variant: VariantState) -> dict[str, Any]:
    """Contention, page faults, switches and clocks of its timed blocks, where they were read."""
    fields: dict[str, Any] = {}
    device = state.device
    job = state.timed_job
    blocks = variant.blocks
    on_one_thread = device is not None and device.kind == "cpu" and device.threads == 1
    alone = job is None or not job.ranks  # a rank waits for the others
    if on_one_thread and alone and variant.contention is not None:
        fields["contention"] = variant.contention
    if blocks and job and job.clock == Clock.WALL:
        fields["faults_per_block"] = variant.faults / blocks
        fields["switches_per_block"] = variant.switches / blocks
    if blocks and variant.sm_mhz:
        fields["sm_mhz"] = variant.sm_mhz / blocks
    return fields


def _final_status(draft: Draft, variant: VariantState) -> tuple[Status, Finding | None]:
    """Once a run is over, no variant is pending any more."""
    if variant.status != Status.PENDING or draft.under_way:
        return variant.status, variant.reason
    if variant.name in draft.state.samples.measured or variant.last(FirstSteps):
        return Status.OK, None
    if variant.last(ProgramEnded):
        return Status.OK, None
    failure = variant.failure
    if failure and failure.kind == FailureKind.TIMEOUT:
        return Status.FAILED, failure.cause
    return Status.SKIPPED, ended_before(variant.name)


def _time(draft: Draft, variant: VariantState, status: Status) -> Estimate | None:
    """Seconds per step with their interval, as far as they are known."""
    for feature in draft.features:
        if time := feature.step_time(variant):
            return time
    if status not in (Status.OK, Status.PENDING):
        return None
    samples = draft.samples
    items = variant.items
    if interval := samples.interval((variant.name,)):
        return interval.estimate.moved(lambda time_s: time_s * items)
    rough = samples.rough(variant.name)
    if rough is not None:
        return Estimate(value=rough * items)
    if calibrated := variant.last(Calibrated):
        return Estimate(value=calibrated.step_s)
    return None


def _warm_up_s(variant: VariantState) -> float | None:
    """Return the seconds of warm-up blocks beyond settled ones, up to the first settled one."""
    warmed = variant.last(WarmedUp)
    if warmed is None or warmed.steps is None:
        return None
    times_s = warmed.times_s
    if not times_s:
        return 0.0
    settled_s = median(times_s[-(len(times_s) // 3) :])
    slower = takewhile(lambda time_s: time_s > settled_s * _SETTLED, times_s)
    return warmed.steps * sum(time_s - settled_s for time_s in slower)


def _clocks_s(state: RunState, variant: VariantState, time: Estimate | None) -> dict[str, float]:
    clocks_s: dict[str, float] = {}
    if time and state.timed_job:
        clocks_s[state.timed_job.clock.value] = time.value
    for other in variant.all(OtherClock):
        if other.times_s:
            clocks_s[other.clock.value] = median(other.times_s)
    return clocks_s


def rate(amount: float | None, seconds: float | None) -> float | None:
    if not amount or not seconds:
        return None
    return amount / seconds
