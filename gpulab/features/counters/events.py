"""What ncu counted in a step of a variant."""

from __future__ import annotations

from gpulab.core.events import VariantEvent
from gpulab.core.values import Text
from gpulab.features.counters.metrics import CountedKernel


class KernelsCounted(VariantEvent, frozen=True):
    """The kernels of one step, those first that take longest, and all of them as one: sums, and
    means weighted by time. `report` is ncu's file.
    """

    kernels: list[CountedKernel]
    together: CountedKernel
    report: Text
