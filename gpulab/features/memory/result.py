"""The memory of a step: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.features.memory.events import MemoryUsed


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """Of the report of a variant."""

    memory: MemoryUsed | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """Of the report of a run."""

    sweet_spot: str | None = None
