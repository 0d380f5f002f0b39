"""The check of declared work against what the device can do, once a run knows its times and its roofs."""

from __future__ import annotations

from dataclasses import replace

from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.physics import DeclaredWork, RateCheck, rate_checks
from gpulab.protocol.ceiling import LINKS
from gpulab.protocol.events import Examined
from gpulab.protocol.finding import Finding, Value, finding
from gpulab.protocol.jobs import Measure
from gpulab.protocol.statuses import Cache, CheckKind, Status
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.report.variant_state import VariantState


def with_physics(state: RunState, samples: SampleView, roofs: RoofSet | None) -> RunState:
    """The state with what the roofs say of every variant; those that are faster than they allow are invalid."""
    judged = {name: _judged(state, variant, samples, roofs) for name, variant in state.variants.items()}
    return replace(state, variants=judged)


def _judged(state: RunState, variant: VariantState, samples: SampleView, roofs: RoofSet | None) -> VariantState:
    examined = physics_of(state, variant, samples, roofs)
    if examined is None:
        return variant
    by_kind = {**variant.examined, CheckKind.PHYSICS: examined}
    if examined.ok or variant.status not in (Status.PENDING, Status.OK):
        return replace(variant, examined=by_kind)
    return replace(variant, examined=by_kind, status=Status.INVALID, reason=examined.reason)


def physics_of(state: RunState, variant: VariantState, samples: SampleView, roofs: RoofSet | None) -> Examined | None:
    """What the roofs say of a variant's rates; None where it declares no work, or no roof was measured for it.

    Its values are those of the rate that comes nearest to its roof, or goes furthest above it.
    """
    work = _declared(state, variant, samples)
    checks = rate_checks(work, roofs) if work and roofs else []
    if not checks:
        return None
    worst = next((check for check in checks if not check.possible), checks[0])
    name = variant.info.name
    return Examined(
        variant=name,
        check=CheckKind.PHYSICS,
        ok=worst.possible,
        count=len(checks),
        values=_arithmetic(worst),
        reason=None if worst.possible else _above_roof(name, worst),
    )


def _declared(state: RunState, variant: VariantState, samples: SampleView) -> DeclaredWork | None:
    """None where nothing is declared or measured, or the bytes are those of a link, which has a roof of its own."""
    built, job, device, counted = variant.built, state.timed_job, state.device, variant.counted
    if built is None or job is None or device is None:
        return None
    moved = built.bytes or _written(variant)
    if not (moved or built.flops):
        return None
    name, items = variant.info.name, variant.items
    interval = samples.interval((name,))
    per_item_s = interval.median if interval else samples.rough(name)
    if not per_item_s:
        return None
    on_link = isinstance(job, Measure) and job.roof in LINKS
    cache_bytes = state.ceilings.cache_bytes if state.ceilings else None
    return DeclaredWork(
        seconds=per_item_s * items,
        high_s=interval.high * items if interval else None,
        bytes=None if on_link else moved,
        flops=built.flops,
        dtype=built.dtype,
        distinct_bytes=counted.distinct_bytes if counted else None,
        fewer_flops=counted is None or counted.fewer_flops,
        # The system's word on a virtual machine is the cache of the whole socket: no more can have been kept.
        cache_bytes=max(device.l2_bytes, cache_bytes or 0),
        hot=job.cache == Cache.HOT,
        on_gpu=device.on_gpu,
    )


def _written(variant: VariantState) -> int | None:
    """Bytes of the output, of a variant that declares none and was seen to write all of it."""
    examined = variant.examined.get(CheckKind.OUTPUTS)
    size = examined.values.get("bytes") if examined and CheckKind.DETERMINISM in variant.examined else None
    return int(size) if isinstance(size, (int, float)) and size else None


def _arithmetic(check: RateCheck) -> dict[str, Value]:
    return {
        "declared": check.amount,
        "unit": check.unit,
        "time_s": check.seconds,
        "rate": check.rate,
        "roof": check.roof,
        "roof_rate": check.roof_rate,
        "ratio": check.ratio,
        "allowed": check.allowed,
    }


def _above_roof(name: str, check: RateCheck) -> Finding:
    return finding(
        "above_roof",
        name,
        declared=check.amount,
        unit=check.unit,
        time_s=check.seconds,
        rate=check.rate,
        roof=check.roof,
        roof_rate=check.roof_rate,
        ratio=check.ratio,
        allowed=check.allowed,
    )
