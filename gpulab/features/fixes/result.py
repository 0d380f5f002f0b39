"""What came out of each fix, as plain data."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.statuses import Verdict


class FixReport(msgspec.Struct, frozen=True, kw_only=True):
    """One fix. `why_not`: why it does not apply here; then nothing else is known of it.

    `answers` is the code of the finding of the step as it is that names this fix. `speedup` is
    what was measured; `error` of the output against the step as it is, within
    `tolerance`. `gained`: whether the interval lies above 1x. `lines` of the program have to be
    edited to have it for good, as `edit` says.
    """

    name: str
    sentence: str
    why_not: str = ""
    answers: str | None = None
    speedup: Estimate | None = None
    verdict: Verdict | None = None
    error: float | None = None
    tolerance: float | None = None
    reason: Finding | None = None
    """Why it has no verdict, or a wrong one."""
    gained: bool = False
    lines: list[str] = []
    edit: str = ""


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about fixes."""

    fixes: list[FixReport] = []
    """What --try gave of each fix, with those that do not apply."""
