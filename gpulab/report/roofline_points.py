"""A variant's declared work against what was measured: its place on the roofline, and whether the work is true."""

from __future__ import annotations

from collections import Counter

from gpulab.analysis.bound import OVER, StepFacts
from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.datasheet import nominal_ceilings
from gpulab.analysis.roofline import Point, Roofline, point_of
from gpulab.protocol.ceiling import CACHE, DERIVED, MEMORY, UNSTEADY
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Calibrate, Measure
from gpulab.protocol.partition import WAITING
from gpulab.protocol.statuses import Cache, CeilingChoice, Clock
from gpulab.protocol.telemetry_fields import PERCENT
from gpulab.report.report import RunReport, Time
from gpulab.report.state import RunState, VariantState

DECLARED, COUNTED = "declared", "counted"
_AGREE = 0.2
_FLOPS_AGREE = 0.1
_MOST_ARROWS = 2


def roofs_of(state: RunState) -> RoofSet | None:
    """Everything known to limit the run's device; None where no ceilings were asked for."""
    job = state.job
    wanted = isinstance(job, Calibrate) or (job is not None and job.ceilings != CeilingChoice.NONE)
    if not wanted or state.device is None:
        return None
    measured = state.ceilings.ceilings if state.ceilings else ()
    return RoofSet((*measured, *nominal_ceilings(state.device)))


def roofline_point(
    state: RunState, variant: VariantState, roofs: RoofSet | None, time: Time | None, clocks: dict[str, float]
) -> Point | None:
    """Where a variant stands; None where its work is not declared, or nothing was measured."""
    built, job = variant.built, state.timed_job
    if roofs is None or time is None or built is None or not time.median or job is None:
        return None
    dram_bytes = dram_bytes_per_step(state, variant, roofs)
    on_device = job.clock == Clock.DEVICE
    facts = StepFacts(
        seconds=time.median,
        bytes=built.bytes,
        flops=built.flops,
        dtype=built.dtype,
        launches=variant.counted.operations if variant.counted else None,
        waiting=None if on_device or _is_exposed(variant) else _waiting(clocks),
        on_device=on_device,
        dram_bytes=dram_bytes,
        cache_bytes=_cache_bytes(state),
        cache_seen=bool(state.ceilings and state.ceilings.cache_bytes is not None),
        hot=job.cache == Cache.HOT,
        roof=job.roof if isinstance(job, Measure) else None,
        waiting_phase=_waiting_phase(variant),
    )
    agree = dram_bytes is not None and built.bytes and abs(dram_bytes / built.bytes - 1) <= _AGREE
    return point_of(
        variant.info.name, facts, roofs, low_s=time.low, high_s=time.high, work=COUNTED if agree else DECLARED
    )


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


def dram_bytes_per_step(state: RunState, variant: VariantState, roofs: RoofSet) -> float | None:
    """Bytes a step between the device and its memory, by the share of its bandwidth that the device counted."""
    solo, job = variant.solo_run, state.timed_job
    nominal = next(
        (ceiling for ceiling in roofs.ceilings if ceiling.roof == MEMORY and ceiling.source == DERIVED), None
    )
    means = state.telemetry.solo_means(variant.info.name)
    if solo is None or means is None or nominal is None or (job is not None and job.cache == Cache.COLD):
        return None
    share = means.means.get("dram")
    if share is None:
        return None
    counted = share / PERCENT * nominal.best * (solo.ended - solo.started)
    return max(0.0, counted - solo.restored_bytes) / solo.steps


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
        dram_bytes = dram_bytes_per_step(state, variant, roofs)
        if dram_bytes and built and built.bytes and dram_bytes > (OVER + _AGREE) * built.bytes:
            findings.append(finding("moves_more_bytes", name, ratio=dram_bytes / built.bytes))
    return findings


def _waiting_phase(variant: VariantState) -> tuple[str, float] | None:
    """The longest of the phases that wait by their name, and its share; None where there is none."""
    seconds = variant.phases.seconds if variant.phases else {}
    longest = max(WAITING & seconds.keys(), key=lambda name: seconds[name], default=None)
    return (longest, seconds[longest] / sum(seconds.values())) if longest and seconds[longest] else None


def _cache_bytes(state: RunState) -> int:
    """What the last-level cache holds for this run: as it was seen, else as the system reports.

    A virtual machine reports the cache of its whole socket, and gets a slice of it.
    """
    if state.ceilings and state.ceilings.cache_bytes is not None:
        return state.ceilings.cache_bytes
    return state.device.l2_bytes if state.device else 0


def _is_exposed(variant: VariantState) -> bool:
    """Whether the device's own time has gaps between launches in it, and so does not tell waiting from working."""
    return variant.other_clock is not None and variant.other_clock.exposed


def _waiting(clocks: dict[str, float]) -> float | None:
    """Share of the wall time that the device's own clock does not have."""
    wall, device = clocks.get(Clock.WALL), clocks.get(Clock.DEVICE)
    return max(0.0, 1 - device / wall) if wall and device else None
