"""What was tuned: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.core.payloads import Tuning


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about `gpulab.tune`."""

    tuning: Tuning | None = None
    """What `gpulab.tune` chose, and from which candidates."""
    tuning_cached: bool = False
    """Whether it was measured in an earlier run."""
