"""A variant's declared work against the roofs, and the evidence for what limits it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from msgspec import structs

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, Calibrated, Counted, Examined, OtherClock, SoloRun
from gpulab.core.findings import Finding
from gpulab.core.jobs import Calibrate, Measure, TimedJob
from gpulab.core.payloads import (
    BUSY,
    CACHE,
    DERIVED,
    LAUNCH,
    LINKS,
    MATRIX,
    MEMORY,
    REST,
    UNSTEADY,
    VECTOR,
    WAITING,
)
from gpulab.core.statuses import Cache, CeilingChoice, Clock
from gpulab.features.goodput.analysis import parts_on_cpu
from gpulab.features.goodput.events import Operation, Phases, Profiled, by_inputs, summed
from gpulab.features.roofline import result
from gpulab.features.roofline.bound import (
    DIFFERS,
    Bound,
    Cause,
    OperationPoint,
    Point,
    Roofline,
    bound_of,
    point_of,
)
from gpulab.features.roofline.ceilings import RoofSet, nominal_ceilings
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured, RoofProbed
from gpulab.features.roofline.evidence import DeviceCounters, StepFacts
from gpulab.features.roofline.findings import (
    ceilings_not_used,
    declares_more_bytes,
    flops_differ,
    moves_more_bytes,
)
from gpulab.features.roofline.physics import physics_of
from gpulab.features.telemetry.fields import PERCENT
from gpulab.features.telemetry.report import TelemetryState
from gpulab.report.feature import Draft, Feature
from gpulab.report.report import RunReport, VariantReport, fields_of
from gpulab.report.state import Keep, RunState, VariantState
from gpulab.stats.statistics import median_interval

_MOST = 60
_FLOATING = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")


def operation_points(
    profiled: Profiled, roofs: RoofSet, cache_bytes: int, *, cache_seen: bool
) -> list[OperationPoint]:
    """Return points of the operations with a formula that take longest, whoever calls them. Their
    times are as they were recorded: a host's hold what the profiler takes of them.
    """
    steps = profiled.steps
    on_device = any(row.on_device for row in profiled.operations)
    host = [row for row in profiled.operations if not row.on_device and row.name != REST]
    rows = summed(host, lambda row: (row.name, row.shapes, row.dtype))
    timed = [(seconds_of(row), row) for row in rows if row.calls]
    points = []
    for seconds, row in sorted(timed, key=lambda pair: -pair[0]):
        if not seconds or not (row.flops or row.bytes):
            continue
        facts = StepFacts(
            time_s=Estimate(value=seconds / row.calls),
            bytes=_of_a_call(row.bytes, row.calls),
            flops=_of_a_call(row.flops, row.calls) if row.dtype in _FLOATING else None,
            dtype=row.dtype if row.dtype in _FLOATING else None,
            launches=None if on_device else 1,
            on_gpu=on_device,
            cache_bytes=cache_bytes,
            cache_seen=cache_seen,
        )
        point = point_of(row.name, facts, bound_of(facts, roofs))
        if point is not None:
            points.append(
                OperationPoint(
                    **structs.asdict(point),
                    shapes=row.shapes,
                    inputs=row.dtype,
                    calls=row.calls / steps,
                    seconds=seconds / steps,
                    flops=None if row.flops is None else row.flops / steps,
                    bytes=None if row.bytes is None else row.bytes / steps,
                )
            )
        if len(points) == _MOST:
            break
    return points


def seconds_of(row: Operation) -> float:
    """Return the seconds of its work: those of its kernels, else its own with what it calls."""
    if row.device_total_s is not None:
        return row.device_total_s
    return row.total_s or 0.0


def _of_a_call(amount: float | None, calls: float) -> int | None:
    return None if amount is None else round(amount / calls)


def short_operation(name: str) -> str:
    """Beside a plot: mm of aten::mm."""
    return name.removeprefix("aten::").strip("_").removeprefix("scaled_dot_product_")


_SHORT = 3
_SHORT_S = 3e-6
"""An operation of so many launch costs, or seconds without one, is mostly its start."""
_SEVERAL = 2
_GATHERS = re.compile(r"aten::(index|gather|take|embedding|scatter|_index_put_impl_|_unsafe_index)")
"""Operations at indices that may lie anywhere."""


def step_facts(
    state: RunState,
    variant: VariantState,
    roofs: RoofSet,
    step_s: float,
    clocks_s: Mapping[str, float],
) -> StepFacts:
    """Return what the events of a run say of one step of a variant."""
    built = variant.last(Built)
    job = state.timed_job
    counted = variant.last(Counted)
    assert built is not None
    assert job is not None
    on_gpu = state.on_gpu
    device_s = _device_s(variant, clocks_s)
    waiting, launching = _waiting(state, variant, step_s, device_s)
    one_thread = not on_gpu and state.device is not None and state.device.threads == 1
    preempted, waited = _off_cpu_shares(variant) if one_thread else (None, None)
    cache_seen, cache_bytes = _cache_bytes(state)
    strided = None
    if counted and counted.operand_bytes:
        strided = counted.strided_bytes / counted.operand_bytes
    between_ranks = job.declares_bytes_of_link and job.roof not in LINKS
    return StepFacts(
        **fields_of(built, "flops", "dtype"),
        bytes=None if between_ranks else built.bytes,
        time_s=Estimate(value=step_s),
        launches=counted.operations if counted else None,
        on_gpu=on_gpu,
        waiting=waiting if on_gpu else None,
        launching=launching,
        device_s=device_s,
        counters=_counters(state, variant, device_s or step_s),
        dram_bytes=dram_bytes_per_step(state, variant, roofs),
        preempted=preempted,
        waited=waited,
        **_profile_of_thread(variant, roofs) if not on_gpu else {},
        faults=None if on_gpu else _faults_per_step(variant),
        strided=strided,
        cache_bytes=cache_bytes,
        cache_seen=cache_seen,
        hot=job.cache == Cache.HOT,
        roof=job.roof if isinstance(job, Measure) else None,
        communicating=_communicating(variant, step_s),
        waiting_phase=_waiting_phase(variant),
    )


def _off_cpu_shares(variant: VariantState) -> tuple[float | None, float | None]:
    """(share of the step in which others ran instead of the thread of a CPU, share in which it
    slept or waited).

    The profiler's process saw how much of it was waiting; without it, others took at most a slice
    for each involuntary switch.
    """
    off = variant.contention
    if off is None:
        return None, None
    profiled = variant.last(Profiled)
    if profiled and profiled.waited is not None:
        waited = min(off, profiled.waited)
    else:
        # another thread has a CPU for 4 ms before it is this one's turn again
        waited = max(0.0, off - variant.switches * 0.004 / variant.wall_s)
    return off - waited, waited


def _profile_of_thread(variant: VariantState, roofs: RoofSet) -> dict[str, Any]:
    """Return the profile of a CPU's main thread; nothing without a profile or operations."""
    profiled = variant.last(Profiled)
    counted = variant.last(Counted)
    if profiled is None:
        none_of_torch = counted is not None and not counted.operations
        return {"outside": 1.0} if none_of_torch else {}
    parts = parts_on_cpu(profiled.partition, profiled.steps, profiled.plain_s, 1.0)
    launch = roofs.launch_s()
    longest_s = _SHORT * launch.median if launch else _SHORT_S
    rows = [row for row in by_inputs(profiled.operations) if not row.on_device and row.calls]
    short = [row for row in rows if row.self_s / row.calls <= longest_s]
    several = sum(row.calls for row in short) >= _SEVERAL * profiled.steps
    running = 1 - parts.get("preempted", 0.0)
    outside = None
    if running and not profiled.partition.marked:
        outside = parts.get("other", 0.0) / running
    return {
        "outside": outside,
        "short_operations": sum(row.share for row in short) if several else None,
        "gathering": sum(row.share for row in rows if _GATHERS.match(row.name)),
        "longest_operation": (rows[0].name, rows[0].share) if rows else None,
    }


def dram_bytes_per_step(state: RunState, variant: VariantState, roofs: RoofSet) -> float | None:
    """Bytes a step moves between device and memory, by the counted share of its bandwidth."""
    solo = variant.last(SoloRun)
    job = state.timed_job
    nominal = next(
        (roof for roof in roofs.ceilings if roof.roof == MEMORY and roof.source == DERIVED), None
    )
    alone = state.part(TelemetryState).solo_report(variant.name)
    is_cold = job is not None and job.cache == Cache.COLD
    if solo is None or alone is None or nominal is None or is_cold:
        return None
    share = alone.means.get("dram")
    if share is None:
        return None
    counted = share / PERCENT * nominal.median * (solo.ended - solo.started)
    return max(0.0, counted - solo.restored_bytes) / solo.steps


def _waiting_phase(variant: VariantState) -> tuple[str, float] | None:
    """The longest phase that waits by its name, and its share; None where there is none."""
    phases = variant.last(Phases)
    seconds = phases.seconds if phases else {}
    longest = max(WAITING & seconds.keys(), key=lambda name: seconds[name], default=None)
    if longest is None or not seconds[longest]:
        return None
    return longest, seconds[longest] / sum(seconds.values())


def _cache_bytes(state: RunState) -> tuple[bool, int]:
    """(whether it was seen, what the last-level cache holds for this run): else as the system
    reports.

    A virtual machine reports the cache of its whole socket, and gets a slice of it.
    """
    ceilings = state.last(CeilingsMeasured)
    if ceilings and ceilings.cache_bytes is not None:
        return True, ceilings.cache_bytes
    return False, state.device.l2_bytes if state.device else 0


def _device_s(variant: VariantState, clocks_s: Mapping[str, float]) -> float | None:
    """The device's own time of a step; None where its clock has gaps between launches in it."""
    device = variant.last(OtherClock, Clock.DEVICE)
    return None if device and device.exposed else clocks_s.get(Clock.DEVICE)


def _waiting(
    state: RunState, variant: VariantState, step_s: float, device_s: float | None
) -> tuple[float | None, float | None]:
    """(share of a step in which the device does nothing, the part of it in which the host starts
    operations).

    By the profile where there is one: kernels take as long under it, and what is left of the step
    was idle.
    """
    job = state.timed_job
    profiled = variant.last(Profiled)
    is_hot = job is not None and job.cache == Cache.HOT
    if profiled and profiled.repeatable and profiled.partition.on_device and is_hot:
        parts = profiled.partition.seconds
        idle_s = sum(seconds for name, seconds in parts.items() if name not in BUSY)
        waiting = _not_working(profiled, step_s)[1] / step_s
        return waiting, waiting * parts.get("launch-bound", 0.0) / idle_s if idle_s else 0.0
    if device_s is None:
        return None, None
    if job and job.clock == Clock.DEVICE:
        return 0.0, None
    return max(0.0, 1 - device_s / step_s), None


def _communicating(variant: VariantState, step_s: float) -> float | None:
    """The share of a step in which the device only communicates; None without a profile."""
    profiled = variant.last(Profiled)
    if profiled is None or not profiled.repeatable or not profiled.partition.on_device:
        return None
    return _not_working(profiled, step_s)[0] / step_s


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


def _counters(state: RunState, variant: VariantState, device_s: float) -> DeviceCounters | None:
    """Return what the device counted in the solo run, over its own time; None if nothing."""
    telemetry = state.part(TelemetryState)
    solo = variant.last(SoloRun)
    alone = telemetry.solo_report(variant.name)
    # flushing is most of such a run
    cold = state.timed_job is not None and state.timed_job.cache == Cache.COLD
    if solo is None or alone is None or cold or not state.on_gpu:
        return None
    longer = max(1.0, solo.time_s / device_s)
    started = telemetry.started
    shares = {
        name: min(1.0, alone.means[name] / PERCENT * longer)
        for name in ("sm", "occupancy", "tensor", "fp64", "fp32", "fp16", "dram")
        if name in alone.means
    }
    power_w = alone.means.get("power")
    if not shares and power_w is None:
        return None
    return DeviceCounters(
        **shares,
        power_w=power_w,
        power_limit_w=started.limits.get("power") if started else None,
        capped="P" in alone.clocks,
    )


def _faults_per_step(variant: VariantState) -> float | None:
    """Page faults of a step in its timed blocks."""
    calibrated = variant.last(Calibrated)
    if calibrated is None or not variant.blocks:
        return None
    return variant.faults / variant.blocks / calibrated.steps_per_block


_FLOPS_AGREE = 0.1
_MOST_ARROWS = 2


def roofs_of(state: RunState) -> RoofSet | None:
    """Everything known to limit the run's device; None where no ceilings were asked for."""
    job = state.job
    if job is None or state.device is None:
        return None
    if isinstance(job, TimedJob) and job.ceilings == CeilingChoice.NONE:
        return None
    event = state.last(CeilingsMeasured)
    measured = event.ceilings if event else ()
    beside = [_probed_ceiling(events, measured) for events in _probed(state).values()]
    return RoofSet((*beside, *measured, *nominal_ceilings(state.device)))


def cause_and_point(
    state: RunState,
    variant: VariantState,
    roofs: RoofSet | None,
    time: Estimate | None,
    clocks_s: dict[str, float],
) -> tuple[Cause | None, Point | None]:
    """Return what limits a variant, None if unknown; its point, None where no work is declared. Of
    a smoke run, whose times are of a few steps, neither.
    """
    built = variant.last(Built)
    job = state.timed_job
    if time is None or built is None or not time.value or job is None or job.smoke:
        return None, None
    name = variant.name
    known = roofs or RoofSet(())
    beside = {
        key: [event.ratios[name] / event.amount for event in events if name in event.ratios]
        for key, events in _probed(state).items()
    }
    facts = replace(
        step_facts(state, variant, known, time.value, clocks_s), time_s=time, beside=beside
    )
    declared = bool(facts.bytes or facts.flops)
    bound = bound_of(facts, known) if declared else _bound_by_counts(facts, variant, known)
    cause = None
    if bound is not None:
        cause = Cause(bound=bound.kind, or_else=list(bound.or_else), reason=bound.reason)
    return cause, point_of(name, facts, bound) if declared else None


def _bound_by_counts(facts: StepFacts, variant: VariantState, roofs: RoofSet) -> Bound | None:
    """The bound of a step without declared work: by torch's counts, where possible."""
    counted = variant.last(Counted)
    if counted and counted.operand_bytes:
        facts_counted = replace(facts, bytes=counted.operand_bytes, flops=counted.flops or None)
        bound = bound_of(facts_counted, roofs)
        if bound and not bound.reason.code.startswith("above"):
            return bound
    return bound_of(facts, roofs)


def roofline_of(report: RunReport) -> Roofline | None:
    """The run's roofline, with an arrow to each variant from its last comparison's other."""
    if report.ceilings is None:
        return None
    points = [variant.roofline for variant in report.variants if variant.roofline]
    places = {point.variant: index for index, point in enumerate(points)}
    against = {comparison.variant: comparison.against for comparison in report.comparisons}
    tangled = {name for name, arrows in Counter(against.values()).items() if arrows > _MOST_ARROWS}
    arrows = [
        (places[before], places[after])
        for after, before in against.items()
        if before in places and after in places and before not in tangled
    ]
    return Roofline(report.ceilings.ceilings, points, arrows)


_MOST_OPERATIONS = 8


def roofline_of_operations(report: RunReport, name: str) -> Roofline | None:
    """The operations of a variant that take longest, below the roofs of the device."""
    points = report.variant(name).operation_points
    if report.ceilings is None or not points:
        return None
    labelled = [
        structs.replace(point, variant=f"{short_operation(point.variant)} {point.shapes}".rstrip())
        for point in points[:_MOST_OPERATIONS]
    ]
    return Roofline(report.ceilings.ceilings, labelled, noun="operation")


NO_ROOFS = "no steady ceiling of this device is known: gpulab --calibrate measures them"


def lacks_roofs(variant: VariantReport) -> bool:
    """Return whether its operations have no place only because no roof is known."""
    rows = variant.goodput.operations if variant.goodput else []
    return not variant.operation_points and any(row.flops for row in rows)


def _disagreements(draft: Draft) -> list[Finding]:
    """Return where what was declared is not what was counted, and ceilings that cannot be used."""
    state = draft.state
    roofs = draft.cached(roofs_of)
    if roofs is None:
        return []
    findings = []
    builds = [variant.last(Built) for variant in state.variants.values()]
    dtypes = {built.dtype or "fp32" for built in builds if built}
    roof = state.job.roof if isinstance(state.job, Measure) else None
    every = isinstance(state.job, Calibrate)
    unsteady = [
        ceiling.name
        for ceiling in roofs.unsteady()
        if every or ceiling.roof in (MEMORY, CACHE, roof) or ceiling.kind in dtypes
    ]
    if unsteady:
        findings.append(ceilings_not_used(ceilings=unsteady, times=UNSTEADY))
    for name, variant in state.variants.items():
        built = variant.last(Built)
        counted = variant.last(Counted)
        flops = (built.flops, counted.flops) if built and counted else (None, None)
        if flops[0] and flops[1] and abs(flops[0] / flops[1] - 1) > _FLOPS_AGREE:
            findings.append(flops_differ(name, declared=flops[0], counted=flops[1]))
        # Bytes that are declared for a link are read and written by its memory as well, and by
        # whatever waits for them.
        on_link = state.timed_job is not None and state.timed_job.declares_bytes_of_link
        dram_bytes = None if on_link else dram_bytes_per_step(state, variant, roofs)
        if dram_bytes and built and built.bytes and dram_bytes > (1 + DIFFERS) * built.bytes:
            findings.append(moves_more_bytes(name, ratio=dram_bytes / built.bytes))
        operands = counted.operand_bytes if counted else None
        # Where torch sees no operation there is no count; what others do beside its operations is
        # not in it.
        if built and built.bytes and operands and built.bytes > (1 + DIFFERS) * operands:
            findings.append(declares_more_bytes(name, declared=built.bytes, operands=operands))
    return findings


def _probed(state: RunState) -> dict[tuple[str, str], list[RoofProbed]]:
    """Return what was measured of roofs between the blocks, by roof and kind."""
    by_key: dict[tuple[str, str], list[RoofProbed]] = defaultdict(list)
    for event in state.all(RoofProbed):
        by_key[event.roof, event.kind].append(event)
    return by_key


def _probed_ceiling(events: list[RoofProbed], measured: tuple[Ceiling, ...]) -> Ceiling:
    """A roof as it was during the run: the median over its processes, and the interval of that."""
    first = events[0]
    rates = [event.amount / event.time_s for event in events]
    interval = median_interval(rates)
    method = next(
        (ceiling.method for ceiling in measured if ceiling.key == (first.roof, first.kind)), None
    )
    return Ceiling(
        roof=first.roof,
        kind=first.kind,
        unit="FLOP/s" if first.roof in (MATRIX, VECTOR) else "B/s",
        best=max(rates),
        median=median(rates),
        median_low=interval.low if interval else min(rates),
        median_high=interval.high if interval else max(rates),
        samples=sum(event.blocks for event in events),
        processes=len(events),
        method=method,
    )


def _add_older(before: CeilingsMeasured, event: CeilingsMeasured) -> CeilingsMeasured:
    """The event; until it has the launches, which come last, also what it lacks of those before: of
    an earlier run.
    """
    if any(ceiling.roof == LAUNCH for ceiling in event.ceilings):
        return event
    fresh = {ceiling.key for ceiling in event.ceilings}
    older = [ceiling for ceiling in before.ceilings if ceiling.key not in fresh]
    cache_bytes = before.cache_bytes if event.cache_bytes is None else event.cache_bytes
    ceilings = (*event.ceilings, *older)
    return structs.replace(event, ceilings=ceilings, cache_bytes=cache_bytes)


def _derived(draft: Draft) -> Iterator[Examined]:
    """Yield what the roofs say of every variant; those faster than they allow are invalid."""
    roofs = draft.cached(roofs_of)
    for variant in draft.state.variants.values():
        if examined := physics_of(draft.state, variant, draft.samples, roofs):
            yield examined


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    roofs = draft.cached(roofs_of)
    cause, point = cause_and_point(draft.state, variant, roofs, report.time_s, report.clocks_s)
    return report.with_parts(cause=cause, roofline=point)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    roofs = draft.cached(roofs_of)
    if roofs is None or not roofs.ceilings:
        return report
    event = draft.state.last(CeilingsMeasured) or CeilingsMeasured(t=draft.now)
    ceilings = structs.replace(event, ceilings=roofs.ceilings)
    seen, cache_bytes = _cache_bytes(draft.state)
    variants = []
    for variant in report.variants:
        profiled = draft.state.variants[variant.name].last(Profiled)
        if profiled is not None:
            points = operation_points(profiled, roofs, cache_bytes, cache_seen=seen)
            variant = variant.with_parts(operation_points=points)
        variants.append(variant)
    return structs.replace(report.with_parts(ceilings=ceilings), variants=variants)


FEATURE = Feature(
    "roofline",
    variant_part=result.VariantPart,
    run_part=result.RunPart,
    keeps={CeilingsMeasured: Keep(merge=_add_older), RoofProbed: Keep(1000)},
    derive_events=_derived,
    add_to_variant=_add_to_variant,
    findings=_disagreements,
    add_to_run=_add_to_run,
)
