"""What limits each variant of a run, its operations below the roofs, and what was declared wrongly:
the parts of a report about the roofline.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from msgspec import structs

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, Counted, Examined
from gpulab.core.findings import Finding
from gpulab.core.jobs import Calibrate, Measure, TimedJob
from gpulab.core.payloads import CACHE, LAUNCH, MEMORY, REST, UNSTEADY
from gpulab.core.statuses import CeilingChoice
from gpulab.features.goodput.events import Operation, Profiled, summed
from gpulab.features.roofline import result
from gpulab.features.roofline.bound import (
    DIFFERS,
    OVER,
    Cause,
    OperationPoint,
    Point,
    Roofline,
    StepFacts,
    limit_of,
)
from gpulab.features.roofline.ceilings import RoofSet, ceiling_from, nominal_ceilings
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured, RoofProbed
from gpulab.features.roofline.facts import cached_bytes, dram_bytes_per_step, launching, step_facts
from gpulab.features.roofline.findings import (
    ceilings_not_used,
    declares_more_bytes,
    flops_differ,
    moves_more_bytes,
)
from gpulab.features.roofline.physics import physics_of
from gpulab.report.feature import Draft, Feature
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import Keep, RunState, VariantState

_FLOATING = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")
_MOST_OPERATIONS, _MOST_DRAWN = 60, 8


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


def _probed(state: RunState) -> dict[tuple[str, str], list[RoofProbed]]:
    """Return what was measured of roofs between the blocks, by roof and kind."""
    by_key: dict[tuple[str, str], list[RoofProbed]] = defaultdict(list)
    for event in state.all(RoofProbed):
        by_key[event.roof, event.kind].append(event)
    return by_key


def _probed_ceiling(events: list[RoofProbed], measured: tuple[Ceiling, ...]) -> Ceiling:
    """A roof as it was during the run: the median over its processes, and the interval of that;
    without one between the least and the most that was seen.
    """
    key = events[0].roof, events[0].kind
    method = next((ceiling.method for ceiling in measured if ceiling.key == key), None)
    seen = ceiling_from(*key, 1, [event.time_s / event.amount for event in events], method=method)
    rates = [event.amount / event.time_s for event in events]
    return structs.replace(
        seen,
        spread=0.0,
        median_low=seen.median_low or min(rates),
        median_high=seen.median_high or max(rates),
        samples=sum(event.blocks for event in events),
        processes=len(events),
    )


def _limit(draft: Draft, variant: VariantState, report: VariantReport) -> Cause | None:
    """Return what limits a variant: by declared work, else by what torch counted of it."""
    roofs = draft.cached(roofs_of) or RoofSet(())
    facts = step_facts(draft.state, variant, report, roofs)
    if facts is None:
        return None
    name = variant.name
    beside = {
        key: [event.ratios[name] / event.amount for event in events if name in event.ratios]
        for key, events in _probed(draft.state).items()
    }
    facts = replace(facts, beside=beside)
    counted = variant.last(Counted)
    is_declared = bool(facts.bytes or facts.flops)
    if not is_declared and roofs.ceilings and counted and counted.operand_bytes:
        known = replace(facts, bytes=counted.operand_bytes, flops=counted.flops or None)
        cause = limit_of(name, known, roofs)
        if cause and not (isinstance(cause, Point) and cause.fraction.value > OVER):
            return _without_point(cause)
    return limit_of(name, facts, roofs)


def _without_point(cause: Cause) -> Cause:
    return Cause(bound=cause.bound, or_else=cause.or_else, reason=cause.reason)


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    limit = _limit(draft, variant, report)
    point = limit if isinstance(limit, Point) else None
    return report.with_parts(cause=limit and _without_point(limit), roofline=point)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    roofs = draft.cached(roofs_of)
    if roofs is None or not roofs.ceilings:
        return report
    event = draft.state.last(CeilingsMeasured) or CeilingsMeasured(t=draft.now)
    ceilings = structs.replace(event, ceilings=roofs.ceilings)
    cache_bytes = cached_bytes(draft.state)
    variants = []
    for variant in report.variants:
        profiled = draft.state.variants[variant.name].last(Profiled)
        if profiled is not None:
            points = _operation_points(profiled, roofs, cache_bytes)
            variant = variant.with_parts(operation_points=points)
        variants.append(variant)
    return structs.replace(report.with_parts(ceilings=ceilings), variants=variants)


def _operation_points(profiled: Profiled, roofs: RoofSet, cache_bytes: int) -> list[OperationPoint]:
    """Return points of the operations with a formula that take longest, whoever calls them. Their
    times are as they were recorded: a host's hold what the profiler takes of them.
    """
    on_gpu = any(row.on_device for row in profiled.operations)
    host = [row for row in profiled.operations if not row.on_device and row.name != REST]
    rows = summed(host, lambda row: (row.name, row.shapes, row.dtype))
    rows = [row for row in rows if row.calls and seconds_of(row) and (row.flops or row.bytes)]
    points = []
    for row in sorted(rows, key=seconds_of, reverse=True)[:_MOST_OPERATIONS]:
        is_floating = row.dtype in _FLOATING
        facts = StepFacts(
            time_s=Estimate(value=seconds_of(row) / row.calls),
            bytes=round(row.bytes / row.calls) if row.bytes else None,
            flops=round(row.flops / row.calls) if row.flops and is_floating else None,
            dtype=row.dtype if is_floating else None,
            launches=None if on_gpu else 1,
            on_gpu=on_gpu,
            cache_bytes=cache_bytes,
            others={} if on_gpu else launching(1, roofs, seconds_of(row) / row.calls),
        )
        point = limit_of(row.name, facts, roofs)
        if isinstance(point, Point):
            points.append(_operation_point(row, point, profiled.steps))
    return points


def _operation_point(row: Operation, point: Point, steps: int) -> OperationPoint:
    return OperationPoint(
        **structs.asdict(point),
        shapes=row.shapes,
        inputs=row.dtype,
        calls=row.calls / steps,
        seconds=seconds_of(row) / steps,
        flops=None if row.flops is None else row.flops / steps,
        bytes=None if row.bytes is None else row.bytes / steps,
    )


def seconds_of(row: Operation) -> float:
    """Return the seconds of its work: those of its kernels, else its own with what it calls."""
    if row.device_total_s is not None:
        return row.device_total_s
    return row.total_s or 0.0


def short_operation(name: str) -> str:
    """Beside a plot: mm of aten::mm."""
    return name.removeprefix("aten::").strip("_").removeprefix("scaled_dot_product_")


def roofline_of(report: RunReport) -> Roofline | None:
    """The run's roofline, with an arrow to each variant from its last comparison's other."""
    if report.ceilings is None:
        return None
    points = [variant.roofline for variant in report.variants if variant.roofline]
    places = {point.variant: index for index, point in enumerate(points)}
    against = {comparison.variant: comparison.against for comparison in report.comparisons}
    tangled = {name for name, arrows in Counter(against.values()).items() if arrows > 2}
    arrows = [
        (places[before], places[after])
        for after, before in against.items()
        if before in places and after in places and before not in tangled
    ]
    return Roofline(
        report.ceilings.ceilings, points, arrows, earlier_s=_earlier_s(report, report.ceilings)
    )


def _earlier_s(report: RunReport, measured: CeilingsMeasured) -> float | None:
    """Return how long before the run another one measured these; None where it did itself."""
    if measured.cached and measured.at:
        with suppress(ValueError, TypeError, OverflowError):  # of a run file of anybody's
            before = datetime.fromisoformat(report.at) - datetime.fromisoformat(measured.at)
            return before.total_seconds()
    return None


def roofline_of_operations(report: RunReport, name: str) -> Roofline | None:
    """The operations of a variant that take longest, below the roofs of the device."""
    points = report.variant(name).operation_points
    if report.ceilings is None or not points:
        return None
    labelled = [
        structs.replace(point, variant=f"{short_operation(point.variant)} {point.shapes}".rstrip())
        for point in points[:_MOST_DRAWN]
    ]
    earlier_s = _earlier_s(report, report.ceilings)
    return Roofline(report.ceilings.ceilings, labelled, noun="operation", earlier_s=earlier_s)


def _disagreements(draft: Draft) -> Iterator[Finding]:
    """Yield where what was declared is not what was counted, and ceilings that cannot be used."""
    state = draft.state
    roofs = draft.cached(roofs_of)
    if roofs is None:
        return
    unsteady = _unsteady(state, roofs)
    if unsteady:
        yield ceilings_not_used(ceilings=unsteady, times=UNSTEADY)
    # Bytes that are declared for a link are read and written by its memory as well, and by
    # whatever waits for them.
    on_link = state.timed_job is not None and state.timed_job.declares_bytes_of_link
    for name, variant in state.variants.items():
        built = variant.last(Built)
        counted = variant.last(Counted)
        if built is None:
            continue
        flops = counted.flops if counted else None
        if built.flops and flops and abs(built.flops / flops - 1) > 0.1:
            yield flops_differ(name, declared=built.flops, counted=flops)
        if not built.bytes:
            continue
        most = (1 + DIFFERS) * built.bytes
        moved = None if on_link else dram_bytes_per_step(state, variant, roofs)
        if moved and moved > most:
            yield moves_more_bytes(name, ratio=moved / built.bytes)
        # Where torch sees no operation there is no count; what others do beside its operations is
        # not in it.
        operands = counted.operand_bytes if counted else None
        if operands and built.bytes > (1 + DIFFERS) * operands:
            yield declares_more_bytes(name, declared=built.bytes, operands=operands)


def _unsteady(state: RunState, roofs: RoofSet) -> list[str]:
    """The ceilings that cannot be used, of those that matter to the run."""
    job = state.job
    builds = [variant.last(Built) for variant in state.variants.values()]
    dtypes = {built.dtype or "fp32" for built in builds if built}
    matters = {MEMORY, CACHE, job.roof if isinstance(job, Measure) else None}
    return [
        ceiling.name
        for ceiling in roofs.unsteady()
        if isinstance(job, Calibrate) or ceiling.roof in matters or ceiling.kind in dtypes
    ]


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
