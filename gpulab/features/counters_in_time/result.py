"""Counters over the steps of a variant: parts of the report, as the events have them."""

from __future__ import annotations

import msgspec

from gpulab.features.counters_in_time.events import SampledSteps, Sampling


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about sampled counters."""

    counters_in_time: SampledSteps | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about sampled counters."""

    counters_in_time: Sampling | None = None
