"""What somebody expects of a run before it starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

from gpulab.features.roofline.bound import BoundKind
from gpulab.report.report import RunReport

LIMITS: dict[str, frozenset[BoundKind]] = {
    "memory": frozenset({BoundKind.MEMORY, BoundKind.CACHE, BoundKind.PAGE_FAULTS}),
    "arithmetic": frozenset({BoundKind.COMPUTE, BoundKind.POWER}),
    "launches": frozenset({BoundKind.LAUNCH, BoundKind.HOST, BoundKind.INTERPRETER}),
    "waiting": frozenset(
        {BoundKind.LATENCY, BoundKind.LINK, BoundKind.WAITING, BoundKind.PREEMPTED}
    ),
}
"""What may be guessed to limit a baseline, and what the roofline then calls it."""
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
