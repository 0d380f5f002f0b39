"""The statistics of a run: medians, their exact order-statistic interval, what correlation adds to
it, and Student's t.

The interval of a median lies between two order statistics whose ranks come from the binomial
distribution (Conover, Practical Nonparametric Statistics, 3.2): no resampling, no normality, and it
covers at least what it says for independent values of any distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan, cos, exp, lgamma, log, pi, sin, sqrt
from operator import mul
from statistics import median as median

from gpulab.core.estimate import Estimate

CONFIDENCE = 0.99
_NEGLIGIBLE = 1e-17
MOST_CORRELATION = 0.8
"""More cannot be estimated from as few values as a run has: the interval becomes three times as
wide at most.
"""
_FEWEST_CORRELATED = 5


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

    @property
    def estimate(self) -> Estimate:
        """Return it as it is reported."""
        return Estimate(value=self.median, low=self.low, high=self.high, n=self.n)


@lru_cache(maxsize=4096)
def ranks(n: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """0-based ranks (low, high) between which a median of n values lies, or None where n is too
    small.

    P(x[r] < median < x[n-1-r]) = 1 - 2 P(Binomial(n, 1/2) <= r): the largest r that keeps it >=
    confidence.
    """
    if n < 1:
        return None
    low, high = 0, (n - 1) // 2
    if 1 - 2 * _tail(n, low) < confidence:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if 1 - 2 * _tail(n, middle) >= confidence:
            low = middle
        else:
            high = middle - 1
    return low, n - 1 - low


def _tail(n: int, r: int) -> float:
    """P(Binomial(n, 1/2) <= r), summed from its largest term down, to a relative 1e-12."""
    term = exp(lgamma(n + 1) - lgamma(r + 1) - lgamma(n - r + 1) - n * log(2))
    total = 0.0
    for k in range(r, -1, -1):
        total += term
        term *= k / (n - k + 1)
        if term < _NEGLIGIBLE * total:
            break
    return total


FEWEST = next(n for n in range(1, 100) if ranks(n))
"""The fewest values that can carry an interval at `CONFIDENCE`: 8 at 99 %."""


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The median and its exact interval, or None where there are too few values for the
    confidence.
    """
    n = len(values)
    between = ranks(n, confidence)
    if between is None:
        return None
    ordered = sorted(values)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return Interval(middle, ordered[between[0]], ordered[between[1]], n)


def median_estimate(values: Sequence[float]) -> Estimate | None:
    """The median, with its interval where there are enough values; None where there are none."""
    if not values:
        return None
    interval = median_interval(values)
    if interval is None:
        return Estimate(value=median(values), n=len(values))
    return interval.estimate


def correlated_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of values in the order of their time, wider where neighbours are alike.

    Values of an autoregressive process with correlation r say as much as n (1 - r) / (1 + r)
    independent ones, so each half of the interval grows by the square root of the inverse. The
    estimate of r is corrected for its bias in short series (Kendall 1954), and a negative one
    narrows nothing.
    """
    interval = median_interval(values, confidence)
    if interval is None:
        return None
    r = positive_correlation(values)
    wider = sqrt((1 + r) / (1 - r))
    low = interval.median - wider * (interval.median - interval.low)
    high = interval.median + wider * (interval.high - interval.median)
    return Interval(interval.median, low, high, interval.n)


def positive_correlation(values: Sequence[float]) -> float:
    """Return the lag-1 correlation, corrected for bias, between 0 and `MOST_CORRELATION`."""
    n = len(values)
    mean = sum(values) / n if n else 0.0
    deviations = [value - mean for value in values]
    total = sum(deviation * deviation for deviation in deviations)
    if n < _FEWEST_CORRELATED or total <= 0.0:
        return 0.0
    lag_1: float = sum(map(mul, deviations, deviations[1:])) / total
    corrected = (lag_1 * n + 1) / (n - 3)
    return min(MOST_CORRELATION, max(0.0, corrected))


def log_ratios(after: Sequence[float], before: Sequence[float]) -> list[float]:
    """log(after / before) of each pair. ValueError where the lengths differ."""
    return [log(a / b) for a, b in zip(after, before, strict=True)]


def as_speedup(theta: Interval) -> Interval:
    """The interval of a speedup, exp(-theta), from that of theta = log(t_variant / t_baseline)."""
    return Interval(exp(-theta.median), exp(-theta.high), exp(-theta.low), theta.n)


_LARGEST = 1e6
_STEPS = 80
_MOST_DEGREES = 200
"""Beyond, the distribution is close to the normal one, and its sum would be long."""


def for_comparisons(interval: Interval, count: int) -> Interval:
    """The interval at the confidence that leaves `count` of them together at `CONFIDENCE`.

    Exact ranks would need more values than a run has processes (8 carry 99 %, 12 carry 99.9 %): so
    the ends of the exact interval are moved out as those of Student's t move.
    """
    if ranks(interval.n) is None or count <= 1:
        return interval
    degrees = min(interval.n - 1, _MOST_DEGREES)
    wider = quantile(1 - (1 - CONFIDENCE) / count, degrees) / quantile(CONFIDENCE, degrees)
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
    """P(|T| <= t) by its finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
    26.7.4).
    """
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
