"""Counters over the steps of a variant: parts of the report."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding


class SampledSteps(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of a variant's steps: as the event."""

    interval_s: float
    steps: int
    step_s: float
    shown_s: float
    rows: dict[str, list[float]]
    per_step: dict[str, float] = {}
    over_declared: float | None = None
    """Bytes of device memory that were read and written over those declared."""


class CountersReport(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling as a whole."""

    package: str = ""
    ratios: dict[str, float] = {}
    """By row, the count of a copy over its size."""
    cost: Estimate | None = None
    """What sampling adds to the time of a step, as a share of it."""
    memory_bytes_per_s: float | None = None
    """The measured roof."""
    findings: list[Finding] = []


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about sampled counters."""

    counters_in_time: SampledSteps | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about sampled counters."""

    counters_in_time: CountersReport | None = None
