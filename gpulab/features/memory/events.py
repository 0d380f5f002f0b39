"""What a variant needs of the device's memory."""

from __future__ import annotations

from gpulab.core.events import VariantEvent
from gpulab.core.values import Count


class MemoryUsed(VariantEvent, frozen=True, omit_defaults=False):
    """The device memory that a variant needs when it runs by itself, beyond what was there before
    it (bytes).

    `held` are allocated between two steps, `peak` at most during a step, held ones
    included. `reserved` is the most that torch had taken from the device by then; None on a
    CPU, where it reserves nothing.
    """

    held: Count
    peak: Count
    reserved: Count | None = None
