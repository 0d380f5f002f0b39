"""What limits a step, and the ceilings of its device: parts of the report."""

from __future__ import annotations

import msgspec

from gpulab.features.roofline.bound import Cause, OperationPoint, Point
from gpulab.features.roofline.events import CeilingsMeasured


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """Of the report of a variant."""

    cause: Cause | None = None
    """What limits its step, declared or not; None where unknown."""
    roofline: Point | None = None
    operation_points: list[OperationPoint] = []
    """The operations of its profiled step for which there are a formula and a roof, those that take
    longest first.
    """


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """Of the report of a run."""

    ceilings: CeilingsMeasured | None = None
    """With what the run itself measured of roofs, and what its datasheet says."""
