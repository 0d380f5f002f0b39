"""Whether declared work can have been done in the time that was measured: no device is faster than
its roofs.

Errors count in favour of the variant: the slow end of its time, the high end of the roof, every
roof that could apply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, Counted, Examined
from gpulab.core.findings import Finding, Value
from gpulab.core.jobs import TimedJob
from gpulab.core.payloads import CACHE, LINKS, MATRIX, MEASURED, MEMORY, VECTOR
from gpulab.core.statuses import Cache, CheckKind
from gpulab.features.roofline.bound import OVER, StepFacts
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.roofline.findings import above_roof, just_above_roof
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState, VariantState

MOST = 1.1
"""A rate this many times the roof is not believed, with its whole interval above it."""
MOST_WITHOUT_INTERVAL = 2.0
"""The same where there are too few values for an interval."""
MOST_OF_UNSTEADY = 10.0
"""Without a steady roof: a disturbed machine is not ten times as fast for a moment."""
_EMULATED = {"fp32": (("tf32", 3), ("bf16", 9)), "fp64": (("int8", 28),)}
"""Libraries make a product in one dtype of several in another, as exact: so many for each."""
_EXACT = 1e-5
"""The relative error up to which a product of fp32 may be one of those."""
_FEWER_FLOPS = 4.0
"""Winograd's F(4x4, 3x3) multiplies so many times less than the convolution that it computes."""
_NEARER_CACHES = 4 << 20
"""Fewer bytes may lie in a nearer cache than was measured, which is not 10x as fast."""


@dataclass(frozen=True)
class DeclaredWork(StepFacts):
    """What also limits how fast a step could be. `cache_bytes`: the most that a cache holds."""

    distinct_bytes: int | None = None
    """The most that lies below the operands of its operations; None where that was not seen."""
    exact: bool = True
    """Whether its output is as exact as of products in its own dtype, or unknown."""
    fewer_flops: bool = False
    """Whether a library may do it with fewer FLOPs than are declared."""


class _Limit(NamedTuple):
    """The most that a roof was ever seen to be, in this run or before; its name."""

    name: str
    rate: float
    steady: bool
    measured: bool


class RateCheck(NamedTuple):
    """What is declared over the time, against a roof: `ratio` is that of the median time, `allowed`
    the one up to which it may be true. `values` are those of a finding.
    """

    ratio: float
    allowed: float
    possible: bool
    values: dict[str, Value]


def rate_checks(work: DeclaredWork, roofs: RoofSet) -> list[RateCheck]:
    """FLOPs and bytes that a known roof can be held against, the worst first."""
    checks = [_check(work, "B", amount, limit) for amount, limit in _bytes(work, roofs)]
    limit = _arithmetic(work, roofs) if work.flops else None
    if work.flops and limit:
        times = _FEWER_FLOPS if work.fewer_flops else 1.0
        checks.append(_check(work, "FLOP", work.flops, limit, times))
    return sorted(checks, key=lambda check: -check.ratio / check.allowed)


def _check(
    work: DeclaredWork, unit: str, amount: float, limit: _Limit, times: float = 1.0
) -> RateCheck:
    rate = amount / work.time_s.value
    slowest_rate = amount / work.time_s.ends[1]
    most = MOST if work.time_s.has_interval else MOST_WITHOUT_INTERVAL
    allowed = (most if limit.steady else MOST_OF_UNSTEADY) * times
    ratio = rate / limit.rate
    finding = above_roof(
        declared=amount,
        unit=unit,
        time_s=work.time_s.value,
        rate=rate,
        roof=limit.name,
        roof_rate=limit.rate,
        ratio=ratio,
        allowed=allowed,
    )
    return RateCheck(ratio, allowed, slowest_rate / limit.rate <= allowed, finding.values)


def _arithmetic(work: DeclaredWork, roofs: RoofSet) -> _Limit | None:
    """The roof of the dtype, or of what emulates it; the highest of all without a dtype."""
    kinds = {ceiling.kind for ceiling in roofs.ceilings if ceiling.roof in (MATRIX, VECTOR)}
    limits = _units(roofs, kinds if work.dtype is None else {work.dtype})
    emulated_by = _EMULATED.get(work.dtype or "", ()) if limits and work.exact else ()
    for kind, products in emulated_by:
        for limit in _units(roofs, {kind}):
            name = f"{limit.name} / {products}"
            limits.append(limit._replace(name=name, rate=limit.rate / products))
    if not any(limit.measured for limit in limits):
        return None
    highest = max(limits, key=lambda limit: limit.rate)
    return highest._replace(steady=any(limit.steady and limit.measured for limit in limits))


def _units(roofs: RoofSet, kinds: Collection[str]) -> list[_Limit]:
    """Matrix and vector units in each of these dtypes, by their best source."""
    limits = (_limit(roofs, units, (kind,)) for kind in sorted(kinds) for units in (MATRIX, VECTOR))
    return [limit for limit in limits if limit is not None]


def _bytes(work: DeclaredWork, roofs: RoofSet) -> Iterator[tuple[float, _Limit]]:
    """Bytes, with the roof that they must have passed.

    All of them came through a cache. What no cache can have kept of them since the last step came
    from memory.
    """
    if not work.bytes:
        return
    memory = _limit(roofs, MEMORY)
    cache = _limit(roofs, CACHE)
    distinct = None if work.distinct_bytes is None else min(work.bytes, work.distinct_bytes)
    if cache and cache.measured:
        highest = max(cache, memory or cache, key=lambda limit: limit.rate)
        nearer = not work.on_gpu and (distinct or work.bytes) <= _NEARER_CACHES
        yield work.bytes, highest._replace(steady=False) if nearer else highest
    if memory and memory.measured and distinct is not None:
        uncached = distinct - (work.cache_bytes if work.hot else 0)
        if uncached > 0:
            yield uncached, memory


def _limit(roofs: RoofSet, roof: str, kinds: Collection[str] | None = None) -> _Limit | None:
    """The most that was measured of a roof; where nothing was, what else is known of it."""
    measured = [
        ceiling
        for ceiling in roofs.ceilings
        if ceiling.roof == roof
        and ceiling.source == MEASURED
        and (kinds is None or ceiling.kind in kinds)
    ]
    known = max(measured, key=lambda ceiling: ceiling.highest, default=roofs.best(roof, kinds))
    if known is None:
        return None
    steady = not measured or any(ceiling.steady for ceiling in measured)
    return _Limit(known.name, known.highest, steady, bool(measured))


def physics_of(
    state: RunState, variant: VariantState, samples: SampleView, roofs: RoofSet | None
) -> Examined | None:
    """Return what the roofs say of a variant's rates, as no other place does: what cannot be is
    refused, what is just above is a doubt. None where it declares no work, or no roof was measured
    for it.

    Its values are those of the rate that comes nearest to its roof, or goes furthest above it.
    """
    work = _declared(state, variant, samples)
    checks = rate_checks(work, roofs) if work and roofs else []
    if not checks:
        return None
    worst = next((check for check in checks if not check.possible), checks[0])
    reason: Finding | None = None
    if not worst.possible:
        reason = above_roof.from_values(worst.values, variant.name)
    elif worst.ratio > OVER:
        roof = str(worst.values["roof"])
        reason = just_above_roof(variant.name, ratio=worst.ratio, roof=roof)
    return Examined(
        variant=variant.name,
        check=CheckKind.PHYSICS,
        ok=worst.possible,
        count=len(checks),
        values=worst.values,
        reason=reason,
    )


def _declared(state: RunState, variant: VariantState, samples: SampleView) -> DeclaredWork | None:
    """None where nothing is declared or measured, or the bytes are those of a link."""
    built = variant.last(Built)
    job = state.timed_job
    device = state.device
    if built is None or job is None or device is None:
        return None
    moved = _moved(job, built, variant)
    interval = samples.interval((variant.name,))
    rough = Estimate(value=samples.rough(variant.name) or 0.0)
    per_item_s = interval.estimate if interval else rough
    if not (moved or built.flops) or not per_item_s.value:
        return None
    counted = variant.last(Counted)
    ceilings = state.last(CeilingsMeasured)
    seen = ceilings.cache_bytes if ceilings else None
    outputs = variant.last(Examined, CheckKind.OUTPUTS)
    error = outputs.values.get("error") if outputs else None
    return DeclaredWork(
        time_s=per_item_s.over(1 / variant.items),
        bytes=moved,
        flops=built.flops,
        dtype=built.dtype,
        distinct_bytes=counted.distinct_bytes if counted else None,
        exact=not isinstance(error, float) or error <= _EXACT,
        fewer_flops=counted is None or counted.fewer_flops,
        # The system's word on a virtual machine is the cache of the whole socket: no more can have
        # been kept.
        cache_bytes=max(device.l2_bytes, seen or 0),
        hot=job.cache == Cache.HOT,
        on_gpu=device.on_gpu,
    )


def _moved(job: TimedJob, built: Built, variant: VariantState) -> int | None:
    """Bytes of the device's memory, as far as they are known to be the least."""
    if job.roof in LINKS:
        return None
    if not job.declares_bytes_of_link:
        return built.bytes or _written(variant)
    written = _written(variant)  # by all ranks
    return written // job.ranks if written else None


def _written(variant: VariantState) -> int | None:
    """Bytes of the output, of a variant that declares none and was seen to write all of it."""
    examined = variant.last(Examined, CheckKind.OUTPUTS)
    if examined is None or variant.last(Examined, CheckKind.DETERMINISM) is None:
        return None
    size = examined.values.get("bytes")
    return int(size) if isinstance(size, (int, float)) and size else None
