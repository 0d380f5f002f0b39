"""The counters of a variant's kernels: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.features.counters.metrics import CountedKernel


class CountersReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ncu counted in one step: as the event."""

    kernels: list[CountedKernel]
    together: CountedKernel
    report: str
    dram_of_declared: float | None = None
    """DRAM bytes over the declared ones; None where either is not known, or the declared ones go
    over a link.
    """


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about counters."""

    counters: CountersReport | None = None
