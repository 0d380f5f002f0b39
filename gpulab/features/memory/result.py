"""The memory of a step: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.features.memory.events import MemoryUsed


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about memory."""

    memory: MemoryUsed | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about memory."""

    sweet_spot: str | None = None
