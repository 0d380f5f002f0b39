"""Student's t: how much wider an interval becomes that several comparisons share (Bonferroni)."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt

from gpulab.analysis.statistics import CONFIDENCE, Interval, ranks

_LARGEST = 1e6
_STEPS = 80
_MOST_DEGREES = 200
"""Beyond, the distribution is close to the normal one, and its sum would be long."""


def for_comparisons(interval: Interval, count: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval at the confidence that leaves `count` of them together at `confidence`.

    Exact ranks would need more values than a run has processes (8 carry 99 %, 12 carry 99.9 %): so the ends of the
    exact interval are moved out as those of Student's t move.
    """
    between = ranks(interval.n, confidence)
    if between is None or count <= 1:
        return interval
    degrees = min(interval.n - 1, _MOST_DEGREES)
    wider = quantile(1 - (1 - confidence) / count, degrees) / quantile(confidence, degrees)
    low = interval.median - wider * (interval.median - interval.low)
    high = interval.median + wider * (interval.high - interval.median)
    return Interval(interval.median, low, high, interval.n)


@lru_cache(maxsize=256)
def quantile(confidence: float, degrees: int) -> float:
    """t such that P(|T| <= t) is the confidence, by bisection."""
    low, high = 0.0, _LARGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, degrees) < confidence else (low, middle)
    return high


def within(t: float, degrees: int) -> float:
    """P(|T| <= t) by its finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(degrees))
    square = cos(angle) ** 2
    odd = degrees % 2
    term = total = 0.0
    if degrees > 1:
        term = total = cos(angle) if odd else 1.0
        for k in range(3 if odd else 2, degrees - 1, 2):
            term *= square * (k - 1) / k
            total += term
    return (2 / pi) * (angle + sin(angle) * total) if odd else sin(angle) * total
