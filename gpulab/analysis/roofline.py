"""The roofline: where declared work and measured time put a variant below the ceilings of its device.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gpulab.analysis.bound import Bound, BoundKind
from gpulab.analysis.evidence import StepFacts
from gpulab.protocol.ceiling import LINKS, Ceiling, family
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
    or_else: list[BoundKind] = []
    """Other bounds that it may have, within the intervals of times and roofs: with any, the bound is unsure."""
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


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a step, and the evidence. `or_else` are other bounds that it may have, within the intervals of times
    and roofs: with any, the bound is unsure.
    """

    bound: BoundKind
    or_else: list[BoundKind] = []
    reason: Finding


@dataclass(frozen=True)
class Roofline:
    """What is drawn: ceilings, points, and the indices of the points that arrows lead from and to."""

    ceilings: Sequence[Ceiling]
    points: Sequence[Point] = ()
    arrows: Sequence[tuple[int, int]] = ()


def point_of(variant: str, facts: StepFacts, bound: Bound | None) -> Point | None:
    """Place one variant; None where its work is not declared, or no ceiling is known for it."""
    if bound is None or bound.ceiling is None:
        return None
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    rate = amount / facts.seconds
    rate_low, rate_high = (amount / end_s if end_s else None for end_s in (facts.high_s, facts.low_s))
    intensity = facts.flops / facts.bytes if facts.flops and facts.bytes and not on_link else None
    share = facts.share_of(bound.ceiling)
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
        fraction=share.median,
        fraction_low=share.low if share.exact else None,
        fraction_high=share.high if share.exact else None,
        bound=bound.kind,
        or_else=list(bound.or_else),
        reason=bound.reason,
        bytes_counted=facts.dram_bytes,
        bytes_ratio=None if on_link else _bytes_ratio(facts),
        roof_processes=share.processes,
    )


def _bytes_ratio(facts: StepFacts) -> float | None:
    """Bytes that were counted over those that are declared, where they are not the same."""
    ratio = facts.dram_bytes / facts.bytes if facts.dram_bytes and facts.bytes else None
    return None if ratio is None or abs(ratio - 1) <= DIFFERS else ratio
