"""Predictions of a speedup before a run, and how good they have been."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Annotated

import msgspec

from gpulab.core.statuses import BoundKind
from gpulab.core.values import PositiveAmount
from gpulab.report.past import PastComparison, past_comparison
from gpulab.report.report import RunReport
from gpulab.stats.comparison import Comparison

LIMITS: dict[str, frozenset[BoundKind]] = {
    "memory": frozenset({BoundKind.MEMORY, BoundKind.CACHE, BoundKind.PAGE_FAULTS}),
    "arithmetic": frozenset({BoundKind.COMPUTE, BoundKind.POWER}),
    "launches": frozenset({BoundKind.LAUNCH, BoundKind.HOST}),
    "waiting": frozenset(
        {
            BoundKind.LATENCY,
            BoundKind.LINK,
            BoundKind.COMMUNICATION,
            BoundKind.WAITING,
            BoundKind.PREEMPTED,
        }
    ),
}
"""The limits that can be predicted for a baseline, and the bounds of the roofline for each."""
_MEMORY_REASONS = ("strided_accesses", "random_accesses", "warps_wait")
"""Codes of reasons of latency that are the way in which memory is accessed."""
_KIND = "predictions"
_PROMISE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?:\s*-\s*(\d+(?:\.\d+)?))?x(?!\w)")


@dataclass(frozen=True)
class Prediction:
    """A prediction of the best variant's speedup: one number, or those of a class; `limit` is one
    of LIMITS.
    """

    speedups: Annotated[tuple[PositiveAmount, ...], msgspec.Meta(min_length=1)]
    limit: str | None = None

    @property
    def middle(self) -> float:
        return median(self.speedups)


def limit_right(prediction: Prediction, report: RunReport) -> tuple[BoundKind, bool] | None:
    """(what limits the baseline, whether that was predicted); None without a prediction, or where
    it is unknown.
    """
    if prediction.limit is None or report.baseline is None:
        return None
    cause = report.variant(report.baseline).cause
    if cause is None or cause.bound in (BoundKind.UNKNOWN, BoundKind.UNEXPLAINED):
        return None
    limits = {cause.bound, *cause.or_else}
    if waits_for_memory(report):
        limits.add(BoundKind.MEMORY)
    return cause.bound, not LIMITS[prediction.limit].isdisjoint(limits)


def waits_for_memory(report: RunReport) -> bool:
    """Return whether the latency that limits the baseline is that of its memory accesses."""
    cause = report.variant(report.baseline).cause if report.baseline else None
    return cause is not None and cause.reason.code in _MEMORY_REASONS


def promised(claim: str) -> tuple[float, float] | None:
    """The first speedup, or range of speedups, that a claim names: 31x, 20-40x on a GPU: 31 to
    31.
    """
    if found := _PROMISE.search(claim):
        low = float(found[1])
        return low, float(found[2] or low)
    return None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction beside what was measured of the best variant."""

    at: str
    scenario: str
    prediction: Prediction
    measured: PastComparison
    limit_right: bool | None = None

    @property
    def ratio(self) -> float | None:
        """Predicted over measured speedup; None for the predictions of a class."""
        measured = self.measured.speedup
        if len(self.prediction.speedups) > 1 or not measured:
            return None
        return self.prediction.middle / measured.value


def keep(report: RunReport, best: Comparison | PastComparison, prediction: Prediction) -> Answered:
    """Keep a prediction with the comparison of the best variant."""
    from gpulab.session.store import Store

    _, right = limit_right(prediction, report) or (None, None)
    answered = Answered(
        at=datetime.now(UTC).isoformat(),
        scenario=report.scenario,
        prediction=prediction,
        measured=past_comparison(best),
        limit_right=right,
    )
    with Store() as store:
        store.keep(_KIND, "", answered.at, answered)
    return answered


def newest_answers() -> dict[str, Answered]:
    """The last of each scenario, by its name."""
    from gpulab.session.store import Store

    answers: list[Answered] = []
    with Store() as store:
        answers = store.kept(_KIND, "", Answered)
    return {answered.scenario: answered for answered in answers}


def record() -> tuple[int, int]:
    """(how many of this user's own predictions were answered, how many within a factor of two)."""
    from gpulab.session.store import Store

    predictions: list[Answered] = []
    with Store() as store:
        predictions = store.kept(_KIND, "", Answered)
    ratios = [answered.ratio for answered in predictions]
    own = [ratio for ratio in ratios if ratio is not None]
    return len(own), sum(0.5 <= ratio <= 2 for ratio in own)
