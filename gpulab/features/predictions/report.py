"""What somebody expects of a run before it starts, and how good such predictions have been."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

import msgspec

from gpulab.features.history.report import PastComparison
from gpulab.features.roofline.bound import BoundKind
from gpulab.report.report import RunReport
from gpulab.stats.comparison import Comparison

LIMITS: dict[str, frozenset[BoundKind]] = {
    "memory": frozenset({BoundKind.MEMORY, BoundKind.CACHE, BoundKind.PAGE_FAULTS}),
    "arithmetic": frozenset({BoundKind.COMPUTE, BoundKind.POWER}),
    "launches": frozenset({BoundKind.LAUNCH, BoundKind.HOST, BoundKind.INTERPRETER}),
    "waiting": frozenset(
        {BoundKind.LATENCY, BoundKind.LINK, BoundKind.WAITING, BoundKind.PREEMPTED}
    ),
}
"""What may be guessed to limit a baseline, and what the roofline then calls it."""
_KIND = "predictions"
_PROMISE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?:\s*-\s*(\d+(?:\.\d+)?))?x(?!\w)")


@dataclass(frozen=True)
class Prediction:
    """How many times as fast the best variant will be: one guess, or those of a class; `limit` is
    one of LIMITS.
    """

    speedups: tuple[float, ...]
    limit: str | None = None

    @property
    def middle(self) -> float:
        return median(self.speedups)


def limit_right(prediction: Prediction, report: RunReport) -> tuple[BoundKind, bool] | None:
    """(what limits the baseline, whether that was the guess); None where nobody guessed, or it is
    not known.
    """
    cause = report.variant(report.baseline).cause if report.baseline else None
    if (
        prediction.limit is None
        or cause is None
        or cause.bound in (BoundKind.UNKNOWN, BoundKind.UNEXPLAINED)
    ):
        return None
    return cause.bound, bool(LIMITS[prediction.limit].intersection([cause.bound, *cause.or_else]))


def promised(claim: str) -> tuple[float, float] | None:
    """The first speedup, or range of speedups, that a claim names: 31x, 20-40x on a GPU: 31 to
    31.
    """
    if found := _PROMISE.search(claim):
        low = float(found[1])
        return low, float(found[2] or low)
    return None


class Guess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`guesses` of how many times as fast `variant` is: one, or those of a class. `limit` of the
    baseline.
    """

    at: str
    scenario: str
    variant: str
    guesses: tuple[float, ...]
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    limit: str | None = None
    limit_right: bool | None = None

    @property
    def near(self) -> bool:
        """Whether it was within a factor of two."""
        return self.speedup is not None and 0.5 <= self.guesses[0] / self.speedup <= 2


class Record(NamedTuple):
    """Of guesses that were answered: how many there are, and how many were near."""

    answered: int
    near: int


def keep(report: RunReport, best: Comparison | PastComparison, prediction: Prediction) -> None:
    """Keep a prediction with what was measured of the best variant."""
    from gpulab.session.store import Store

    limit = limit_right(prediction, report)
    guess = Guess(
        at=datetime.now(UTC).isoformat(),
        scenario=report.scenario,
        variant=best.variant,
        guesses=prediction.speedups,
        speedup=best.speedup,
        low=best.low,
        high=best.high,
        limit=prediction.limit,
        limit_right=limit[1] if limit else None,
    )
    with Store() as store:
        store.keep(_KIND, "", guess.at, guess)


def record() -> Record:
    """Of this user's own guesses; those of a class are others'."""
    from gpulab.session.store import Store

    with Store() as store:
        guesses = store.kept(_KIND, "", Guess)
    own = [guess for guess in guesses if len(guess.guesses) == 1 and guess.speedup]
    return Record(len(own), sum(guess.near for guess in own))
