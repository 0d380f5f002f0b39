"""Predictions of a speedup before a run, and how good they have been."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Annotated

import msgspec

from gpulab.core.estimate import Estimate
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
        }
    ),
}
"""The limits that can be predicted for a baseline, and the bounds of the roofline for each."""
_NOT_ITS_OWN = (BoundKind.UNKNOWN, BoundKind.UNEXPLAINED, BoundKind.PREEMPTED)
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


def limit_right(prediction: Prediction, report: RunReport) -> bool | None:
    """Return whether the limit of the baseline was predicted; None where nothing was, or where it
    is not known: contention is no limit of its code.
    """
    cause = report.variant(report.baseline).cause if report.baseline else None
    if prediction.limit is None or cause is None or cause.bound in _NOT_ITS_OWN:
        return None
    limits = {cause.bound}
    if waits_for_memory(report):
        limits.add(BoundKind.MEMORY)
    if not LIMITS[prediction.limit].isdisjoint(limits):
        return True
    return None if LIMITS[prediction.limit] & {*cause.or_else} else False


def waits_for_memory(report: RunReport) -> bool:
    """Return whether the latency that limits the baseline is that of its memory accesses."""
    cause = report.variant(report.baseline).cause if report.baseline else None
    return cause is not None and cause.reason.code == "warps_wait"


def promised(claim: str) -> tuple[float, float] | None:
    """The first speedup, or range of speedups, that a claim names: 31x, 20-40x on a GPU: 31 to
    31.
    """
    if found := _PROMISE.search(claim):
        low = float(found[1])
        return low, float(found[2] or low)
    return None


def near(predicted: float, measured: Estimate) -> bool | None:
    """Return whether a prediction is within a factor of two of what was measured; None where the
    interval is wider than that, and leaves both possible.
    """
    low, high = measured.ends
    if (low < measured.value / 2 or high > 2 * measured.value) and (
        low / 2 <= predicted <= 2 * high
    ):
        return None
    return 0.5 <= predicted / measured.value <= 2


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction beside what was measured of the best variant."""

    at: str
    scenario: str
    prediction: Prediction
    measured: PastComparison

    @property
    def near(self) -> bool | None:
        """Whether it is within a factor of two; None for the predictions of a class."""
        measured = self.measured.speedup
        if len(self.prediction.speedups) > 1 or not measured:
            return None
        return near(self.prediction.middle, measured)


def keep(report: RunReport, best: Comparison | PastComparison, prediction: Prediction) -> Answered:
    """Keep a prediction with the comparison of the best variant."""
    from gpulab.session.store import Store

    answered = Answered(
        at=datetime.now(UTC).isoformat(),
        scenario=report.scenario,
        prediction=prediction,
        measured=past_comparison(best),
    )
    with Store() as store:
        store.keep(_KIND, "", answered.at, answered)
    return answered


def newest_answers() -> dict[str, Answered]:
    """The last of each scenario, by its name."""
    return {answered.scenario: answered for answered in _kept()}


def record() -> tuple[int, int]:
    """(how many of this user's own predictions could be judged, how many within a factor of 2)."""
    own = [answered.near for answered in _kept() if answered.near is not None]
    return len(own), sum(own)


def _kept() -> list[Answered]:
    """All predictions, the newest last."""
    from gpulab.session.store import Store

    answers: list[Answered] = []
    with Store() as store:
        answers = store.kept(_KIND, "", Answered)
    return answers
