"""The ranks of a variant: its part of the report."""

from __future__ import annotations

import msgspec


class RankReport(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a variant: the median seconds per step of its blocks, waiting for others
    included; of a GPU, the memory that it had at most, and the medians of its SM clock and power
    just after each block.
    """

    rank: int
    time_s: float
    memory_bytes: int | None = None
    sm_mhz: float | None = None
    power_w: float | None = None


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about its ranks."""

    ranks: list[RankReport] = []
    """Of a scenario with several."""
