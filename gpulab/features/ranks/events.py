"""What each rank took."""

from __future__ import annotations

from gpulab.core.events import VariantEvent
from gpulab.core.values import Amount, Count, StepTime


class RankTimes(VariantEvent, frozen=True, omit_defaults=False):
    """The times of one rank (`rank`) in each block of a process, waiting for the others included
    (seconds per step); of a GPU, the memory that it had at most, and the clock of its SMs and its
    power just after each block.
    """

    times_s: list[StepTime]
    memory_bytes: Count | None = None
    sm_mhz: list[Amount] = []
    power_w: list[Amount] = []
