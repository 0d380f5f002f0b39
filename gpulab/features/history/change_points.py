"""Where the level of a history changed: by size, by order, and beyond what an honest build differs.

Binary segmentation. At the best place to cut, the weighted means of both sides differ by more than
Student's t allows for every place and every look together, and both lie in a different order
(Wilcoxon), which a few values far out do not bring about. `benchmarks/histories.py` prints what
share of steps this finds, and how often it is wrong, for several kinds of noise.

Plain Python: histories are short, and to import numpy takes longer than to look at a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import exp, expm1, log, log1p, sqrt
from operator import mul
from statistics import NormalDist, median

FEWEST_RUNS = 3
"""On each side of a change."""
LEAST_CHANGE = 0.01
"""What two builds of the same code may differ by."""
MOST_RUNS = 200
"""The newest, which are looked at."""
_ERROR = 2.7e-5
"""Of one look at one history, two-sided: of 60 looks, each at all places, 1 in 200 is wrong."""
_KNOWN_PLACE = 2.576
"""Standard deviations that allow an error of 1 %, where the place of the cut is known."""
_ORDER, _OF_MOST_ORDER = 2.6, 0.9
"""Standard deviations of the sum of ranks; or so much of what the sides can have at most, which is
less where they are short.
"""
_OF_99_PERCENT = 2.576
_NO_SQUARES = 1e-12
"""Of values that are all the same."""


@dataclass(frozen=True)
class Level:
    """The mean of some runs' speedups, and the 99 % interval of that mean."""

    speedup: float
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True)
class Runs:
    """Speedups of runs in their order as log-ratios, and what each counts: more where its own
    interval is narrow.
    """

    logs: Sequence[float]
    weights: Sequence[float]

    def part(self, start: int, end: int) -> Runs:
        return Runs(self.logs[start:end], self.weights[start:end])

    def joined(self, other: Runs) -> Runs:
        return Runs([*self.logs, *other.logs], [*self.weights, *other.weights])

    def __len__(self) -> int:
        return len(self.logs)

    @cached_property
    def weight(self) -> float:
        return sum(self.weights)

    @cached_property
    def mean(self) -> float:
        return _dot(self.weights, self.logs) / self.weight

    @cached_property
    def squares(self) -> float:
        """The weighted sum of squares around the mean."""
        return _dot(self.weights, [(value - self.mean) ** 2 for value in self.logs])


def _dot(weights: Sequence[float], values: Sequence[float]) -> float:
    total: float = sum(map(mul, weights, values))
    return total


def runs_of(intervals: Sequence[tuple[float, float, float]]) -> Runs:
    """Of (speedup, low, high): the ends of its 99 % interval."""
    logs = [log(speedup) for speedup, _, _ in intervals]
    variances = [_variance(low, high) for _, low, high in intervals]
    # a run never counts more than twice as much as most: what runs differ by is in no interval
    usual = median(variances or [1.0]) or 1.0
    return Runs(logs, [usual / (usual + variance) for variance in variances])


def _variance(low: float, high: float) -> float:
    deviation = log(high / low) / 2 / _OF_99_PERCENT
    return deviation**2


def change_points(runs: Runs, histories: int = 1) -> list[int]:
    """Places at which a new level begins, in their order. `histories`: how many are looked at
    together.
    """
    least = NormalDist().inv_cdf(1 - _ERROR / 2 / histories)
    found: list[int] = []
    parts = [(0, len(runs))]
    while parts:
        start, end = parts.pop()
        place = _change(runs.part(start, end), least)
        if place is not None:
            found.append(start + place)
            parts += [(start, start + place), (start + place, end)]
    return sorted(found)


def differ(before: Runs, after: Runs) -> bool | None:
    """Whether two levels differ, by more than builds do; None where there are too few runs."""
    if min(len(before), len(after)) < FEWEST_RUNS:
        return None
    shift = after.mean - before.mean
    degrees = len(before) + len(after) - 2
    squares = before.squares + after.squares
    deviations = _deviations(shift, squares, 1 / before.weight + 1 / after.weight, degrees)
    return deviations > _KNOWN_PLACE and abs(shift) > log1p(LEAST_CHANGE)


def level(runs: Runs) -> Level:
    """Of some runs, at least one."""
    if len(runs) < FEWEST_RUNS:
        return Level(exp(runs.mean), None, None, len(runs))
    degrees = len(runs) - 1
    t = sqrt(degrees * expm1((_OF_99_PERCENT / _as_normal(degrees)) ** 2 / degrees))
    reach = t * sqrt(runs.squares / degrees / runs.weight)
    return Level(exp(runs.mean), exp(runs.mean - reach), exp(runs.mean + reach), len(runs))


def _as_normal(degrees: int) -> float:
    """Of Wallace's transformation of Student's t to a normal deviate (Biometrika 46, 1959)."""
    return (8 * degrees + 1) / (8 * degrees + 3)


def _deviations(shift: float, squares: float, per_weight: float, degrees: int) -> float:
    """Standard deviations of a normal value that is as unlikely as the shift."""
    variance = max(squares, _NO_SQUARES) / degrees * per_weight
    return _as_normal(degrees) * sqrt(degrees * log1p(shift * shift / variance / degrees))


def _change(runs: Runs, least: float) -> int | None:
    """The place of the largest change of all that may be claimed."""
    count = len(runs)
    if count < 2 * FEWEST_RUNS:
        return None
    logs = [value - runs.mean for value in runs.logs]
    weights = list(accumulate(runs.weights))
    sums = list(accumulate(map(mul, runs.weights, logs)))
    claimed = []
    for place in range(FEWEST_RUNS, count - FEWEST_RUNS + 1):
        before = weights[place - 1]
        after = weights[-1] - before
        # the mean of all is 0
        shift = -sums[place - 1] / after - sums[place - 1] / before
        if abs(shift) <= log1p(LEAST_CHANGE):
            continue
        squares = runs.squares - shift * shift * before * after / weights[-1]
        deviations = _deviations(shift, squares, 1 / before + 1 / after, count - 2)
        if deviations > least:
            claimed.append((deviations, place))
    for _, place in sorted(claimed, reverse=True):
        if _is_in_order(runs.logs, place):
            return place
    return None


def _is_in_order(logs: Sequence[float], place: int) -> bool:
    """Whether most of one side lie below most of the other."""
    count = len(logs)
    after = count - place
    order = sorted(range(count), key=logs.__getitem__)
    ranks = sum(rank for rank, where in enumerate(order) if where >= place)
    most = place * after / 2
    deviation = sqrt(place * after * (count + 1) / 12)
    return abs(ranks - after * (count - 1) / 2) >= min(_ORDER * deviation, _OF_MOST_ORDER * most)
