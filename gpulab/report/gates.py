"""A gate: a threshold that a figure of a run, or of a comparison of two, must be shown to reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.jobs import Required
from gpulab.core.statuses import ExitCode, first_in_order
from gpulab.core.units import times, with_interval
from gpulab.report.findings import below_required, not_shown_to_reach, nothing_compared
from gpulab.report.sentences import sentence


class GateKind(StrEnum):
    """SPEEDUP: over the baseline of its own run, at least; SLOWDOWN: of B against A, at most."""

    SPEEDUP = "fail below"
    SLOWDOWN = "fail if slower"


class GateOutcome(StrEnum):
    """The whole interval reaches the threshold, none of it does, or neither is shown."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A demand on one variant, or on a whole scenario, and its outcome.

    `threshold` is a speedup, or a share: 0.03 allows 3 % more time. `ratio` is what
    was measured: the speedup, or how many times as fast B is as A. `reason` says why nothing is
    concluded from it.
    """

    scenario: str
    variant: str = ""
    kind: GateKind
    threshold: float
    outcome: GateOutcome
    ratio: Estimate | None = None
    reason: Finding | None = None

    @property
    def demand(self) -> str:
        if self.kind == GateKind.SPEEDUP:
            return f"at least {times(self.threshold)}"
        return f"at most {self.threshold * 100:.3g} % slower"

    @property
    def words(self) -> str:
        """Describe in a line what was demanded and what was measured."""
        text = f"{self.variant or self.scenario}: {self.demand}"
        if self.ratio is not None:
            text += f", measured {with_interval(self.ratio)}"
        if self.reason:
            text += f": {sentence(self.reason)}"
        return text


def least_ratio(kind: GateKind, threshold: float) -> float:
    """The ratio that a threshold stands for: 3 % more time is 0.971 times as fast."""
    return threshold if kind == GateKind.SPEEDUP else 1 / (1 + threshold)


def outcome_of(least: float, ratio: Estimate | None) -> GateOutcome:
    """Judge by the interval of a ratio, None where there is none."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return GateOutcome.INCONCLUSIVE
    if ratio.low < least <= ratio.high:
        return GateOutcome.INCONCLUSIVE
    return GateOutcome.HOLDS if ratio.low >= least else GateOutcome.FAILS


def exit_code_of(gates: Sequence[Gate]) -> ExitCode:
    """5 where any fails, else 6 where any is inconclusive."""
    codes = {
        GateOutcome.HOLDS: ExitCode.MEASURED,
        GateOutcome.FAILS: ExitCode.SLOWER,
        GateOutcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    }
    return first_in_order(codes[gate.outcome] for gate in gates)


def required_outcome(
    entries: Sequence[Any], required: Required, why_not: Callable[[Any, float], Finding | None]
) -> tuple[ExitCode, Finding | None]:
    """Each comparison, of one run or over several, must be shown to reach what is required of it,
    else `why_not` says why; it fails where its whole interval lies below.
    """
    demanded = [(entry, least) for entry in entries if (least := required.of(entry.variant))]
    for entry, least in demanded:
        if outcome_of(least, entry.speedup) == GateOutcome.FAILS:
            return ExitCode.SLOWER, below_required(entry.variant, required=least)
    for entry, least in demanded:
        if reason := why_not(entry, least):
            return ExitCode.INCONCLUSIVE, reason
    compared = {entry.variant for entry, _ in demanded}
    for name, least in required.variants.items():
        if name not in compared:
            return ExitCode.INCONCLUSIVE, not_shown_to_reach(name, required=least)
    if not demanded:
        return ExitCode.INCONCLUSIVE, nothing_compared(required=required.every or 1.0)
    return ExitCode.MEASURED, None
