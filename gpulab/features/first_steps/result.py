"""The first steps of a variant: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate


class CurveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The first steps of a variant in fresh processes, each step's time over them, in seconds.

    After `settled_after` steps the next ones take at most 1.1 times a settled one; None: they do
    not settle. `excess_s` is what those before cost beyond settled ones. `build_s` came before
    them.
    """

    processes: int
    build_s: Estimate
    steps_s: list[Estimate]
    settled_s: Estimate
    settled_after: int | None
    excess_s: Estimate


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about its first steps."""

    first_steps: CurveReport | None = None
