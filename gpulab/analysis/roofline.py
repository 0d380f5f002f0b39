"""The roofline: where declared work and measured time put a variant below the ceilings of its device.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from gpulab.analysis.bound import BoundKind, bound_of
from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.evidence import StepFacts
from gpulab.analysis.statistics import median_interval
from gpulab.protocol.ceiling import CACHE, LINKS, MEMORY, Ceiling, family
from gpulab.protocol.finding import Finding

DIFFERS = 0.2
"""Bytes that a device counted differ from the declared ones where they do by more than this."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A variant below its roof.

    `rate` is in FLOP/s, or in B/s where no FLOPs are declared; `intensity` in FLOP/byte, None where it has none. Both
    are of declared work; `bytes_counted` is what the device counted between itself and its memory, in a step.
    `fraction` is rate over attainable; `low` and `high` are the ends of an interval, which holds the roof's error as
    well as the time's. `roof_processes`: in how many processes the roof was measured between the blocks, `fraction`
    then being the median of what the blocks of each process give; 0 where the roof is of another time.
    """

    variant: str
    dtype: str
    unit: str
    rate: float
    rate_low: float | None = None
    rate_high: float | None = None
    intensity: float | None = None
    roof: str
    source: str
    attainable: float
    fraction: float
    fraction_low: float | None = None
    fraction_high: float | None = None
    bound: BoundKind
    reason: Finding
    bytes_counted: float | None = None
    bytes_ratio: float | None = None
    """Counted bytes over declared ones, where they differ by more than 20 %."""
    roof_processes: int = 0

    @property
    def family(self) -> str:
        return family(self.dtype)

    @property
    def is_drawable(self) -> bool:
        """Whether it has a place below the roofs; a rate of bytes only has none."""
        return self.intensity is not None and self.intensity > 0 and self.rate > 0 and self.unit == "FLOP/s"


@dataclass(frozen=True)
class Roofline:
    """What is drawn: ceilings, points, and the indices of the points that arrows lead from and to."""

    ceilings: Sequence[Ceiling]
    points: Sequence[Point] = ()
    arrows: Sequence[tuple[int, int]] = ()


def point_of(
    variant: str,
    facts: StepFacts,
    roofs: RoofSet,
    *,
    low_s: float | None,
    high_s: float | None,
    beside: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> Point | None:
    """Place one variant; None where its work is not declared, or no ceiling is known for it.

    `beside` has of ceilings that were measured between the variant's blocks, in every process, what one step takes of
    the roof for each byte or FLOP of its work.
    """
    bound = bound_of(facts, roofs)
    if bound is None:
        return None
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    rate = amount / facts.seconds
    rate_low, rate_high = (amount / end_s if end_s else None for end_s in (high_s, low_s))
    intensity = facts.flops / facts.bytes if facts.flops and facts.bytes and not on_link else None
    shares = _shares_beside(facts, bound.ceiling, beside or {})
    if shares:
        interval = median_interval(shares)
        fraction = median(shares)
        fraction_low, fraction_high = (interval.low, interval.high) if interval else (None, None)
    else:
        fraction = rate / bound.attainable
        # The roof of another time may lie anywhere between its ends; below is what it takes of the higher end.
        low, high = (end / bound.ceiling.best for end in bound.ceiling.ends)
        fraction_low = None if rate_low is None else rate_low / bound.attainable / high
        fraction_high = None if rate_high is None else rate_high / bound.attainable / low
    return Point(
        variant=variant,
        dtype=facts.units,
        unit="FLOP/s" if facts.flops and not on_link else "B/s",
        rate=rate,
        rate_low=rate_low,
        rate_high=rate_high,
        intensity=intensity,
        roof=bound.ceiling.name,
        source=bound.ceiling.source,
        attainable=bound.attainable,
        fraction=fraction,
        fraction_low=fraction_low,
        fraction_high=fraction_high,
        bound=bound.kind,
        reason=bound.reason,
        bytes_counted=facts.dram_bytes,
        bytes_ratio=None if on_link else _bytes_ratio(facts),
        roof_processes=len(shares),
    )


def _bytes_ratio(facts: StepFacts) -> float | None:
    """Bytes that were counted over those that are declared, where they are not the same."""
    ratio = facts.dram_bytes / facts.bytes if facts.dram_bytes and facts.bytes else None
    return None if ratio is None or abs(ratio - 1) <= DIFFERS else ratio


def _shares_beside(
    facts: StepFacts, ceiling: Ceiling, beside: Mapping[tuple[str, str], Sequence[float]]
) -> list[float]:
    """The share of the roof in each process, by blocks of both in the same rounds."""
    amount = facts.bytes if ceiling.roof in (MEMORY, CACHE, *LINKS) else facts.flops
    return [share * (amount or 0) for share in beside.get(ceiling.key, ())] if ceiling.processes else []
