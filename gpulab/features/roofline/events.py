"""The ceilings of a device, and roofs that were measured between blocks."""

from __future__ import annotations

import msgspec

from gpulab.core.events import Event
from gpulab.core.findings import Finding
from gpulab.core.payloads import MEASURED, UNSTEADY
from gpulab.core.values import Amount, Count, Index, Name, PositiveAmount, PositiveCount, StepTime


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling in B/s, FLOP/s, or seconds where less is better.

    `roof` is what limits, one of those that scenarios name; `kind` is how, or in which dtype:
    triad, fp32, pinned. Shares are of the `median`; `median_low` and `median_high` are the ends of
    its exact interval, None where there were too few samples for one. `spread` is the interquartile
    range over the median. `method` says how it was measured or derived. `processes` in which it was
    measured between the blocks of a run, the samples then being their medians; 0 where it was not.
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
        """Between which the median lies; without an interval as far as the best of the samples is
        from it.
        """
        if self.median_low is None or self.median_high is None:
            return min(self.best, self.median), max(self.best, self.median)
        return self.median_low, self.median_high

    @property
    def highest(self) -> float:
        """The most that was seen of it: nothing is faster."""
        return max(self.best, self.ends[1])

    @property
    def steady(self) -> bool:
        """Return whether best and median, and the ends of its interval, agree well enough for the
        ceiling to be used.

        What was measured between the blocks of a run drifts with them, and is used as it is.
        """
        low, high = min(self.best, self.ends[0]), max(self.best, self.ends[1])
        return (
            self.processes > 0
            or max(high / self.median, self.median / low, self.ends[1] / self.ends[0]) <= UNSTEADY
        )


class RoofProbed(Event, frozen=True):
    """A roof in one process: the median seconds of a step of its probe, which moves or computes
    `amount`.

    `ratios`: for each variant the median of those seconds over the variant's, of blocks in the same
    rounds.
    """

    process: Index
    roof: Name
    kind: Name
    amount: PositiveCount
    """Bytes, or FLOPs."""
    time_s: StepTime
    blocks: PositiveCount
    ratios: dict[Name, PositiveAmount] = {}


class CeilingsMeasured(Event, frozen=True, omit_defaults=False):
    """All ceilings of the device known so far, in place of those of an earlier event. `at` is UTC,
    ISO 8601.

    `cached`: measured in another run on this device, with this driver, power limit, torch and
    number of threads. `cache_bytes`: the most that the last-level cache was seen to hold, None
    where its size is not in doubt.
    """

    ceilings: tuple[Ceiling, ...] = ()
    at: Name | None = None
    cache_bytes: Count | None = None
    cached: bool = False
    complete: bool = False
    """Everything was tried, nothing ran out of memory, and all that matters is steady: worth
    keeping.
    """
