"""What a fix or a part of a step would gain, as plain data."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.statuses import Verdict

ALL_TOGETHER = "all_together"
BY_OTHERS, BY_SLOPE = "the others delayed", "its slope"
LESS = 0.1
"""What a part is to take less, in what is shown."""


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


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """One part. `share` of the step that it takes, by its own clock; parts of several threads sum
    to more than 1.

    `slope`: what the step takes longer for each second that the part
    takes longer, 1 on the critical path, 0 where it is hidden. `gain` is what `LESS` less of the
    part would gain, as a share of the step; `gain_from` says by what: the others delayed, or the
    slope. `why_not`: why it cannot be delayed.
    """

    kind: str
    name: str
    lane: str
    share: float | None = None
    why_not: str = ""
    slope: Estimate | None = None
    gain: Estimate | None = None
    gain_from: str = ""


class WhatIfReport(msgspec.Struct, frozen=True, kw_only=True):
    """The gains from delaying the parts of one step, the hooks' cost, and the time of it all."""

    delay_s: float
    less: float
    hooks_cost: Estimate | None = None
    """What the hooks add to a step, relative."""
    elapsed_s: float = 0.0
    parts: list[PartReport] = []


class TriedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A fix that was switched on in every other window of a program's steps: the ratio of their
    times. `in_effect` of its `pairs` it was read back, from `was` to `now`; `alters` says what else
    may change with it.
    """

    name: str
    speedup: Estimate | None = None
    pairs: int = 0
    in_effect: int = 0
    was: str = ""
    now: str = ""
    alters: str = ""
    why_not: str = ""


class TrialsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried in the running steps of a program: its parts delayed, and fixes."""

    less: float
    parts: list[PartReport] = []
    fixes: list[TriedReport] = []


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about what was tried."""

    fixes: list[FixReport] = []
    """What --try gave of each fix, with those that do not apply."""
    what_if: WhatIfReport | None = None
    """What each part of a step would gain, of --what-if."""
    trials: TrialsReport | None = None
    """What --what-if and --try measured in the running steps of a program."""
