"""The statistics of a run: medians and their exact order-statistic interval.

The interval of a median is between two order statistics whose ranks come from the binomial
distribution (Conover, Practical Nonparametric Statistics, 3.2): no resampling, no normality, and it
covers at least what it says for independent values of any distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, exp, log
from statistics import median as median

CONFIDENCE = 0.99


@dataclass(frozen=True)
class Interval:
    """A median of n values with the ends of its interval, in the unit of the values."""

    median: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@cache
def ranks(n: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """0-based ranks (low, high) between which a median of n values lies, or None where n is too small.

    P(x[r] < median < x[n-1-r]) = 1 - 2 P(Binomial(n, 1/2) <= r): the largest r that keeps it >= confidence.
    """
    if n < 1:
        return None
    below, best = 0, None
    for r in range((n + 1) // 2):
        below += comb(n, r)
        if 1 - 2 * below / 2**n < confidence:
            break
        best = r
    return None if best is None else (best, n - 1 - best)


FEWEST = next(n for n in range(1, 100) if ranks(n))
"""The fewest values that can carry an interval at `CONFIDENCE`: 8 at 99 %."""


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Median and its exact interval, or None where there are too few values for the confidence."""
    between = ranks(len(values), confidence)
    if between is None:
        return None
    ordered = sorted(values)
    return Interval(median(ordered), ordered[between[0]], ordered[between[1]], len(ordered))


def log_ratios(after: Sequence[float], before: Sequence[float]) -> list[float]:
    """log(after / before) of each pair. ValueError where the lengths differ."""
    return [log(a / b) for a, b in zip(after, before, strict=True)]


def as_speedup(theta: Interval) -> Interval:
    """The interval of a speedup, exp(-theta), from that of theta = log(t_variant / t_baseline)."""
    return Interval(exp(-theta.median), exp(-theta.high), exp(-theta.low), theta.n)
