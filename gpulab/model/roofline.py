"""The roofline: where declared work and measured time put a variant below the ceilings of its device.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gpulab.model.bound import Bound, Facts, bound_of
from gpulab.model.ceilings import LINKS, Ceiling, Roofs, family


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
    bound: str
    why: str
    work: str = "declared"

    @property
    def family(self) -> str:
        return family(self.dtype)


@dataclass(frozen=True)
class Roofline:
    """What is drawn: ceilings, points, and the indices of the points that arrows lead from and to."""

    ceilings: Sequence[Ceiling]
    points: Sequence[Point] = ()
    arrows: Sequence[tuple[int, int]] = ()


def point_of(
    variant: str, facts: Facts, roofs: Roofs, *, low_s: float | None, high_s: float | None, work: str
) -> Point | None:
    """Place one variant; None where its work is not declared, or no ceiling is known for it."""
    found: Bound | None = bound_of(facts, roofs)
    if found is None:
        return None
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    rate = amount / facts.seconds
    low, high = (amount / one if one else None for one in (high_s, low_s))
    return Point(
        variant=variant,
        dtype=facts.dtype or "fp32",
        unit="FLOP/s" if facts.flops and not on_link else "B/s",
        rate=rate,
        rate_low=low,
        rate_high=high,
        intensity=facts.flops / facts.bytes if facts.flops and facts.bytes and not on_link else None,
        roof=found.ceiling.name,
        source=found.ceiling.source,
        attainable=found.attainable,
        fraction=rate / found.attainable,
        fraction_low=None if low is None else low / found.attainable,
        fraction_high=None if high is None else high / found.attainable,
        bound=found.name,
        why=found.why,
        work=work,
    )
