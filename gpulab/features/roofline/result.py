"""What limits a step, and the ceilings of its device: parts of the report."""

from __future__ import annotations

import msgspec

from gpulab.features.roofline.bound import Cause, OperationPoint, Point
from gpulab.features.roofline.events import CeilingsMeasured


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about the roofline."""

    cause: Cause | None = None
    """What limits its step, declared or not; None where unknown."""
    roofline: Point | None = None
    operation_points: list[OperationPoint] = []
    """The operations of its profiled step for which there are a formula and a roof, those that take
    longest first.
    """


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about the roofline."""

    ceilings: CeilingsMeasured | None = None
    """With what the run itself measured of roofs, and what its datasheet says."""
