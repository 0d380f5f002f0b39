"""The roofline: where declared work and measured time put a variant below the ceilings of its device.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gpulab.analysis.bound import BoundKind, StepFacts, bound_of
from gpulab.analysis.ceilings import RoofSet
from gpulab.protocol.ceiling import LINKS, Ceiling, family
from gpulab.protocol.finding import Finding


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A variant below its roof.

    `rate` is in FLOP/s, or in B/s where no FLOPs are declared; `intensity` in FLOP/byte, None where it has none.
    `fraction` is rate over attainable; `low` and `high` are the ends of an interval. `work` says whether the
    declared bytes are only declared or were counted by the device too.
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
    work: str = "declared"

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
    variant: str, facts: StepFacts, roofs: RoofSet, *, low_s: float | None, high_s: float | None, work: str
) -> Point | None:
    """Place one variant; None where its work is not declared, or no ceiling is known for it."""
    bound = bound_of(facts, roofs)
    if bound is None:
        return None
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    rate = amount / facts.seconds
    rate_low, rate_high = (amount / end_s if end_s else None for end_s in (high_s, low_s))
    return Point(
        variant=variant,
        dtype=facts.units,
        unit="FLOP/s" if facts.flops and not on_link else "B/s",
        rate=rate,
        rate_low=rate_low,
        rate_high=rate_high,
        intensity=facts.flops / facts.bytes if facts.flops and facts.bytes and not on_link else None,
        roof=bound.ceiling.name,
        source=bound.ceiling.source,
        attainable=bound.attainable,
        fraction=rate / bound.attainable,
        fraction_low=None if rate_low is None else rate_low / bound.attainable,
        fraction_high=None if rate_high is None else rate_high / bound.attainable,
        bound=bound.kind,
        reason=bound.reason,
        work=work,
    )
