"""The counters of a GPU over the steps of a variant, sampled after the measurement."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.events import Event, VariantEvent
from gpulab.core.findings import Finding
from gpulab.core.values import Amount, Line, Name, PositiveAmount, PositiveCount, Seconds


class SampledSteps(msgspec.Struct, frozen=True, kw_only=True):
    """The counters over `steps` steps of a variant, whose step took `step_s` meanwhile: of several
    such passes the one with the median time.

    `rows`: by the name of a row, a value for each bin of the `shown_s` seconds in the middle: bytes
    per second, or a share. `per_step`: bytes of a step, over all of them. `cost`: what sampling
    adds to the steps, relative.
    """

    interval_s: Seconds
    steps: PositiveCount
    step_s: PositiveAmount
    shown_s: PositiveAmount
    rows: dict[Name, list[Amount]]
    per_step: dict[Name, Amount]
    cost: Estimate | None = None
    over_declared: Amount | None = None
    """Bytes of device memory over those that a step declares to move there; of the report."""

    @property
    def moved_bytes(self) -> float | None:
        """Bytes of device memory that a step reads and writes."""
        moved = [self.per_step.get(name) for name in ("dram_read", "dram_write")]
        return None if None in moved else sum(filter(None, moved))


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling as a whole: the `package` that did it. `ratios`: by row, the count of a copy
    made there and then over its size. `idle`: bytes per second counted over a link that is idle.
    """

    package: Line = ""
    ratios: dict[Name, Amount] = {}
    idle: dict[Name, Amount] = {}
    findings: list[Finding] = []


class CountersSampled(VariantEvent, frozen=True):
    """The counters of one variant."""

    sampled: SampledSteps


class CountersEnded(Event, frozen=True):
    """Nothing more is sampled."""

    sampling: Sampling
