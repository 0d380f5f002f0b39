"""What the events of a run say of one step: evidence for what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from statistics import fmean

from gpulab.core.events import Built, Calibrated, Counted, OtherClock, SoloRun
from gpulab.core.jobs import Measure
from gpulab.core.payloads import BUSY, DERIVED, LAUNCH, LINKS, MEMORY, PAGE_FAULT, WAITING
from gpulab.core.statuses import Cache, Clock
from gpulab.features.goodput.analysis import parts_on_cpu
from gpulab.features.goodput.events import Phases, Profiled, by_inputs
from gpulab.features.roofline.bound import StepFacts
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.telemetry.fields import PERCENT
from gpulab.features.telemetry.report import TelemetryState
from gpulab.features.telemetry.result import SoloReport
from gpulab.report.report import VariantReport, fields_of
from gpulab.report.state import RunState, VariantState

_COUNTED = ("sm", "occupancy", "tensor", "fp64", "fp32", "fp16", "dram")
_OUTSIDE = "code outside of torch's operations"


def step_facts(
    state: RunState, variant: VariantState, report: VariantReport, roofs: RoofSet
) -> StepFacts | None:
    """Return what is known of one step of a variant; None without a time, or of a smoke run, whose
    times are of a few steps.
    """
    built = variant.last(Built)
    job = state.timed_job
    if built is None or job is None or job.smoke:
        return None
    if report.time_s is None or not report.time_s.value:
        return None
    counted = variant.last(Counted)
    between_ranks = job.declares_bytes_of_link and job.roof not in LINKS
    facts = StepFacts(
        **fields_of(built, "flops", "dtype"),
        bytes=None if between_ranks else built.bytes,
        time_s=report.time_s,
        launches=counted.operations if counted else None,
        on_gpu=state.on_gpu,
        sm_mhz=_sm_mhz(variant),
        cache_bytes=cached_bytes(state),
        hot=job.cache == Cache.HOT,
        roof=job.roof if isinstance(job, Measure) else None,
    )
    if state.on_gpu:
        return _with_device(facts, state, variant, report, roofs)
    return _with_host(facts, state, variant, roofs)


def cached_bytes(state: RunState) -> int:
    """Return what surely stays in the last-level cache: as much as was seen to, else half of what
    the system reports. A virtual machine reports the cache of its whole socket, and gets a slice.
    """
    ceilings = state.last(CeilingsMeasured)
    if ceilings and ceilings.cache_bytes is not None:
        return ceilings.cache_bytes
    return state.device.l2_bytes // 2 if state.device else 0


def dram_bytes_per_step(state: RunState, variant: VariantState, roofs: RoofSet) -> float | None:
    """Bytes a step moves between device and memory, by the counted share of its bandwidth."""
    nominal = next(
        (roof for roof in roofs.ceilings if roof.roof == MEMORY and roof.source == DERIVED), None
    )
    solo = variant.last(SoloRun)
    alone = _solo_report(state, variant)
    if solo is None or nominal is None or alone is None or "dram" not in alone.means:
        return None
    share = alone.means["dram"] / PERCENT
    counted = share * nominal.median * (solo.ended - solo.started)
    return max(0.0, counted - solo.restored_bytes) / solo.steps


def _solo_report(state: RunState, variant: VariantState) -> SoloReport | None:
    """None with cold caches: flushing is most of such a run."""
    if state.timed_job is not None and state.timed_job.cache == Cache.COLD:
        return None
    return state.part(TelemetryState).solo_report(variant.name)


def _sm_mhz(variant: VariantState) -> float | None:
    """The mean clock of its blocks, as spins of the device's clock showed it."""
    if variant.blocks and variant.sm_mhz:
        return variant.sm_mhz / variant.blocks
    device = variant.last(OtherClock, Clock.DEVICE)
    return fmean(device.sm_mhz) if device and device.sm_mhz else None


def _cost(count: float | None, roofs: RoofSet, roof: str, running_s: float) -> float | None:
    """The share of a time that so many of what a ceiling is the cost of take."""
    cost = roofs.cost(roof)
    return min(1.0, count * cost.median / running_s) if count and cost else None


def launching(count: int, roofs: RoofSet, running_s: float) -> dict[str, float]:
    """Return the share of a time that starting so many operations takes, where that is known."""
    return _known({"launching": _cost(count, roofs, LAUNCH, running_s)})


def _known(shares: Mapping[str, float | None]) -> dict[str, float]:
    return {name: share for name, share in shares.items() if share is not None}


def _waiting_phase(variant: VariantState) -> tuple[str, float | None]:
    """The longest phase that waits by its name, and its share."""
    phases = variant.last(Phases)
    seconds = phases.seconds if phases else {}
    longest = max(WAITING & seconds.keys(), key=lambda name: seconds[name], default=None)
    if longest is None or not seconds[longest]:
        return "", None
    return longest, seconds[longest] / sum(seconds.values())


def _with_host(
    facts: StepFacts, state: RunState, variant: VariantState, roofs: RoofSet
) -> StepFacts:
    """Add what the thread of a CPU did beside the work, as shares of the time that it runs."""
    one_thread = state.device is not None and state.device.threads == 1
    off = variant.contention if one_thread else None
    waited = _waited(variant, off or 0.0)
    running = max(0.01, 1 - (off or 0.0))
    running_s = facts.time_s.value * running
    faults = 0.0
    calibrated = variant.last(Calibrated)
    if calibrated and variant.blocks:
        faults = variant.faults / variant.blocks / calibrated.steps_per_block
    phase, in_phase = _waiting_phase(variant)
    starts = [_cost(facts.launches, roofs, LAUNCH, running_s)]
    longest: tuple[str, float] | None = None
    profiled = variant.last(Profiled)
    if profiled is not None:
        rows = [row for row in by_inputs(profiled.operations) if not row.on_device and row.calls]
        launch = roofs.cost(LAUNCH)
        # an operation of three launch costs is mostly its start
        longest_s = 3 * launch.median if launch else 3e-6
        short = [row.share for row in rows if row.self_s / row.calls <= longest_s]
        starts.append(sum(short) if short else None)
        parts = parts_on_cpu(profiled.partition, profiled.steps, profiled.plain_s, 1.0)
        outside = 0.0 if profiled.partition.marked else parts.get("other", 0.0)
        longest = _OUTSIDE, outside
        if rows and rows[0].share > outside:
            longest = rows[0].name, rows[0].share
    elif facts.launches == 0:
        longest = _OUTSIDE, 1.0
    shares = {
        "launching": max((share for share in starts if share is not None), default=None),
        "faulting": _cost(faults, roofs, PAGE_FAULT, running_s),
        "preempted": None if off is None else off - waited,
        "waited": None if off is None else waited,
        "phase": in_phase,
    }
    return replace(
        facts, others=_known(shares), phase=phase, faults=faults, longest_operation=longest
    )


def _waited(variant: VariantState, off: float) -> float:
    """The share of the step in which a thread slept or waited, of that in which it did not run.

    The profiler's process saw how much of it was waiting; without it, others took at most a slice
    for each involuntary switch.
    """
    profiled = variant.last(Profiled)
    if profiled and profiled.waited is not None:
        return min(off, profiled.waited)
    # another thread has a CPU for 4 ms before it is this one's turn again
    return max(0.0, off - variant.switches * 0.004 / variant.wall_s) if off else 0.0


def _with_device(
    facts: StepFacts,
    state: RunState,
    variant: VariantState,
    report: VariantReport,
    roofs: RoofSet,
) -> StepFacts:
    """Add what a GPU did beside the work, and what it counted."""
    step_s = facts.time_s.value
    device = variant.last(OtherClock, Clock.DEVICE)
    # its clock may have gaps between launches in it
    device_s = None if device and device.exposed else report.clocks_s.get(Clock.DEVICE)
    phase, in_phase = _waiting_phase(variant)
    shares = {"launching": _cost(facts.launches, roofs, LAUNCH, step_s), "phase": in_phase}
    profiled = variant.last(Profiled)
    if profiled and profiled.repeatable and profiled.partition.on_device:
        communicating_s, idle_s = _not_working(profiled, step_s)
        shares["communicating"] = communicating_s / step_s
        if facts.hot:
            parts = profiled.partition.seconds
            all_idle_s = sum(seconds for name, seconds in parts.items() if name not in BUSY)
            launching_s = parts.get("launch-bound", 0.0) / (all_idle_s or 1.0) * idle_s
            shares["waiting"] = idle_s / step_s
            shares["launching"] = launching_s / step_s
    if "waiting" not in shares and device_s is not None:
        shares["waiting"] = max(0.0, 1 - device_s / step_s)
    counters = _counters(state, variant, device_s or step_s)
    power_w, limit_w = (counters.get(name) for name in ("power_w", "power_limit_w"))
    alone = _solo_report(state, variant)
    capped = alone is not None and "P" in alone.clocks
    return replace(
        facts,
        others=_known(shares),
        phase=phase,
        dram_bytes=dram_bytes_per_step(state, variant, roofs),
        counters=counters,
        at_power_cap=capped and (power_w or 0.0) >= 0.95 * (limit_w or inf),
    )


def _not_working(profiled: Profiled, step_s: float) -> tuple[float, float]:
    """(seconds of a step in which the device only communicates, those in which it is idle).

    Of ranks one is profiled, and waits longer for the others in what it communicates than it does
    in the measurement: what its own work leaves of the step is divided as the profile divides it.
    """
    seconds = {name: part_s / profiled.steps for name, part_s in profiled.partition.seconds.items()}
    communicating_s = seconds.get("communication", 0.0)
    working_s = sum(seconds.get(name, 0.0) for name in BUSY) - communicating_s
    left_s = max(0.0, step_s - working_s)
    if communicating_s <= left_s:
        return communicating_s, left_s - communicating_s
    idle_s = sum(part_s for name, part_s in seconds.items() if name not in BUSY)
    communicating_s *= left_s / (communicating_s + idle_s)
    return communicating_s, left_s - communicating_s


def _counters(state: RunState, variant: VariantState, device_s: float) -> dict[str, float]:
    """Return what the device counted in the solo run, over its own time; nothing if it did not."""
    solo = variant.last(SoloRun)
    alone = _solo_report(state, variant)
    if solo is None or alone is None:
        return {}
    longer = max(1.0, solo.time_s / device_s)
    counters = {
        name: min(1.0, alone.means[name] / PERCENT * longer)
        for name in _COUNTED
        if name in alone.means
    }
    started = state.part(TelemetryState).started
    limit_w = started.limits.get("power") if started else None
    power = {"power_w": alone.means.get("power"), "power_limit_w": limit_w}
    return {**counters, **_known(power)} if counters or power["power_w"] is not None else {}
