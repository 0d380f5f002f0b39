"""Why a rank comes late."""

from __future__ import annotations

from enum import StrEnum


class LateCause(StrEnum):
    """Why a rank comes late: a part of its step takes longer than that of the others, its thread
    did not get its CPU, its clock is lower, one line takes longer, or nothing measured says why.
    """

    LOADER = "loader"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    GC = "gc"
    OTHER = "other"
    CPU_STOLEN = "cpu stolen"
    THROTTLED = "throttled"
    LINE = "line"
    UNKNOWN = "unknown"
