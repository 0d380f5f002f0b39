"""What came out of each fix, as plain data."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.statuses import Verdict

ALL_TOGETHER = "all_together"


class FixReport(msgspec.Struct, frozen=True, kw_only=True):
    """One fix. `why_not`: why it does not apply here; then nothing else is known of it.

    `speedup` is what was measured; `error` of the output against the step as it is, within
    `tolerance`. `gained`: whether the interval lies above 1x.
    """

    name: str
    sentence: str
    why_not: str = ""
    speedup: Estimate | None = None
    verdict: Verdict | None = None
    error: float | None = None
    tolerance: float | None = None
    reason: Finding | None = None
    """Why it has no verdict, or a wrong one."""
    gained: bool = False


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about fixes."""

    fixes: list[FixReport] = []
    """What --try gave of each fix, with those that do not apply."""
