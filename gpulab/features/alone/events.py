"""What a variant took before others were built."""

from __future__ import annotations

from gpulab.core.events import VariantEvent
from gpulab.core.values import Index, Name, StepTime


class AloneRun(VariantEvent, frozen=True, kw_only=True):
    """Seconds per step of a variant, back to back, before others were built for the rounds of a
    process.

    `later_s`: the same after the last round. `first`: no other variant had been built in that
    process before. `after`: the same build's, by the variant that had been built and stepped just
    before, in that order.
    """

    process: Index
    time_s: StepTime
    later_s: StepTime | None = None
    first: bool = True
    after: dict[Name, StepTime] = {}
