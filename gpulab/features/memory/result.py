"""The memory of a step: its part of the report."""

from __future__ import annotations

import msgspec


class MemoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The device memory that a variant alone needs: as the event, in bytes."""

    held_bytes: int
    peak_bytes: int
    reserved_bytes: int | None = None


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about memory."""

    memory: MemoryReport | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about memory."""

    sweet_spot: str | None = None
