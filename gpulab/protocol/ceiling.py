"""A ceiling: the most that one part of a device can do, and how that is known."""

from __future__ import annotations

import msgspec

from gpulab.protocol.finding import Finding
from gpulab.protocol.values import Amount, Count, Name, PositiveAmount

MEASURED, DERIVED, DATASHEET = "measured", "derived", "datasheet"
SOURCES = (MEASURED, DERIVED, DATASHEET)
"""The best source first."""
MEMORY, CACHE, MATRIX, VECTOR, LAUNCH = "device memory", "cache", "matrix", "vector", "launch"
HOST_TO_DEVICE, DEVICE_TO_HOST = "host to device", "device to host"
LINKS = (HOST_TO_DEVICE, DEVICE_TO_HOST)
PAGE_FAULT = "page fault"
COSTS = (LAUNCH, PAGE_FAULT)
"""What takes seconds, less of which is better: no roof of any work."""
UNSTEADY = 1.5
"""A best figure this many times the median was luck, or the median was disturbed: neither is a ceiling."""
_FAMILIES = {"fp16": "fp16/bf16", "bf16": "fp16/bf16"}


def family(dtype: str | None) -> str:
    """The name of the dtypes that share a roof; work without a dtype is fp32."""
    return _FAMILIES.get(dtype or "fp32", dtype or "fp32")


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling in B/s, FLOP/s, or seconds where less is better.

    `roof` is what limits, one of those that scenarios name; `kind` is how, or in which dtype: triad, fp32, pinned.
    Shares are of the `median`; `median_low` and `median_high` are the ends of its exact interval, None where there were
    too few samples for one. `spread` is the interquartile range over the median. `method` says how it was measured or
    derived. `processes` in which it was measured between the blocks of a run, the samples then being their medians; 0
    where it was not.
    """

    roof: Name
    kind: Name
    unit: Name
    best: PositiveAmount
    median: PositiveAmount
    spread: Amount = 0.0
    samples: Count = 0
    source: Name = MEASURED
    method: Finding | None = None
    sm_mhz: Amount | None = None
    median_low: PositiveAmount | None = None
    median_high: PositiveAmount | None = None
    processes: Count = 0

    @property
    def name(self) -> str:
        return f"{self.roof} {self.kind}".rstrip()

    @property
    def key(self) -> tuple[str, str]:
        return self.roof, self.kind

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the median lies; without an interval as far as the best of the samples is from it."""
        if self.median_low is None or self.median_high is None:
            return min(self.best, self.median), max(self.best, self.median)
        return self.median_low, self.median_high

    @property
    def highest(self) -> float:
        """The most that was seen of it: nothing is faster."""
        return max(self.best, self.ends[1])

    @property
    def steady(self) -> bool:
        """Whether best and median, and the ends of its interval, agree well enough for the ceiling to be used.

        What was measured between the blocks of a run drifts with them, and is used as it is.
        """
        low, high = min(self.best, self.ends[0]), max(self.best, self.ends[1])
        return self.processes > 0 or max(high / self.median, self.median / low, self.ends[1] / self.ends[0]) <= UNSTEADY
