"""A variant's declared work against what was measured: its place on the roofline, and whether the work is true."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from statistics import median

from gpulab.analysis.bound import Bound, bound_of
from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.datasheet import nominal_ceilings
from gpulab.analysis.evidence import StepFacts
from gpulab.analysis.roofline import DIFFERS, Cause, Point, Roofline, point_of
from gpulab.analysis.statistics import median_interval
from gpulab.protocol.ceiling import CACHE, LINKS, MATRIX, MEMORY, UNSTEADY, VECTOR, Ceiling
from gpulab.protocol.events import RoofProbed
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Calibrate, Measure
from gpulab.protocol.statuses import CeilingChoice
from gpulab.report.report import RunReport, Time
from gpulab.report.roofline.step_facts import dram_bytes_per_step, step_facts
from gpulab.report.state import RunState
from gpulab.report.variant_state import VariantState

_FLOPS_AGREE = 0.1
_MOST_ARROWS = 2


def roofs_of(state: RunState) -> RoofSet | None:
    """Everything known to limit the run's device; None where no ceilings were asked for."""
    job = state.job
    wanted = isinstance(job, Calibrate) or (job is not None and job.ceilings != CeilingChoice.NONE)
    if not wanted or state.device is None:
        return None
    measured = state.ceilings.ceilings if state.ceilings else ()
    beside = [_probed_ceiling(events, measured) for events in _probed(state).values()]
    return RoofSet((*beside, *measured, *nominal_ceilings(state.device)))


def cause_and_point(
    state: RunState, variant: VariantState, roofs: RoofSet | None, time: Time | None, clocks: dict[str, float]
) -> tuple[Cause | None, Point | None]:
    """What limits a variant, None where nothing is known; and where it stands, None where its work is not declared."""
    if time is None or variant.built is None or not time.median or state.timed_job is None:
        return None, None
    name, known = variant.info.name, roofs or RoofSet(())
    beside = {
        key: [event.ratios[name] / event.amount for event in events if name in event.ratios]
        for key, events in _probed(state).items()
    }
    facts = replace(
        step_facts(state, variant, known, time.median, clocks), low_s=time.low, high_s=time.high, beside=beside
    )
    declared = bool(variant.built.bytes or variant.built.flops)
    bound = bound_of(facts, known) if declared else _bound_by_counts(facts, variant, known)
    cause = Cause(bound=bound.kind, or_else=list(bound.or_else), reason=bound.reason) if bound else None
    return cause, point_of(name, facts, bound) if declared else None


def _bound_by_counts(facts: StepFacts, variant: VariantState, roofs: RoofSet) -> Bound | None:
    """What limits a step that declares nothing: by what torch counted of it, where no rate of that is impossible."""
    counted = variant.counted
    if counted and counted.operand_bytes:
        bound = bound_of(replace(facts, bytes=counted.operand_bytes, flops=counted.flops or None), roofs)
        if bound and not bound.reason.code.startswith("above"):
            return bound
    return bound_of(facts, roofs)


def roofline_of(report: RunReport) -> Roofline | None:
    """The run's roofline, with an arrow to each variant from the one that it is compared with last."""
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


def disagreements(state: RunState, roofs: RoofSet | None) -> list[Finding]:
    """Where what was declared is not what was counted, and ceilings that cannot be used."""
    if roofs is None:
        return []
    findings = []
    dtypes = {variant.built.dtype or "fp32" for variant in state.variants.values() if variant.built}
    roof = state.job.roof if isinstance(state.job, Measure) else None
    every = isinstance(state.job, Calibrate)
    unsteady = [
        ceiling.name
        for ceiling in roofs.unsteady()
        if every or ceiling.roof in (MEMORY, CACHE, roof) or ceiling.kind in dtypes
    ]
    if unsteady:
        findings.append(finding("ceilings_not_used", ceilings=unsteady, times=UNSTEADY))
    for name, variant in state.variants.items():
        built, counted = variant.built, variant.counted
        flops = (built.flops, counted.flops) if built and counted else (None, None)
        if flops[0] and flops[1] and abs(flops[0] / flops[1] - 1) > _FLOPS_AGREE:
            findings.append(finding("flops_differ", name, declared=flops[0], counted=flops[1]))
        # Bytes that are declared for a link are read and written by its memory as well, and by whatever waits for them.
        dram_bytes = None if roof in LINKS else dram_bytes_per_step(state, variant, roofs)
        if dram_bytes and built and built.bytes and dram_bytes > (1 + DIFFERS) * built.bytes:
            findings.append(finding("moves_more_bytes", name, ratio=dram_bytes / built.bytes))
        operands = counted.operand_bytes if counted else None
        # Where torch sees no operation there is no count; what others do beside its operations is not in it.
        if built and built.bytes and operands and built.bytes > (1 + DIFFERS) * operands:
            findings.append(finding("declares_more_bytes", name, declared=built.bytes, operands=operands))
    return findings


def _probed(state: RunState) -> dict[tuple[str, str], list[RoofProbed]]:
    """What was measured of roofs between the blocks, by roof and kind."""
    by_key: dict[tuple[str, str], list[RoofProbed]] = defaultdict(list)
    for event in state.roofs_probed:
        by_key[event.roof, event.kind].append(event)
    return by_key


def _probed_ceiling(events: list[RoofProbed], measured: tuple[Ceiling, ...]) -> Ceiling:
    """A roof as it was during the run: the median over its processes, and the interval of that."""
    first = events[0]
    rates = [event.amount / event.time_s for event in events]
    interval = median_interval(rates)
    method = next((ceiling.method for ceiling in measured if ceiling.key == (first.roof, first.kind)), None)
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
