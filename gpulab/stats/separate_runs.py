"""The difference of a quantity between separate runs, which have no pairs between them.

A run's processes say where its quantity lay during that run: as their trimmed mean, whose error
follows from their winsorized variance (Yuen, Biometrika 61, 1974). The next run finds the machine
in another state, so each run gets a spread besides, never less than a floor. Ratios of times that
share their process need no more: thirty runs on a busy machine differed by 1.8 to 2.6 %, and their
errors were 1.9 to 2.3 %. Times do: the same runs differed by 10 % with errors of 5 %, so theirs is
at least that of their processes. From enough runs the spread between them is known itself, as long
as both sides were made in turn: what last week and today differ by is in neither of two folders,
and counts in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import expm1, hypot, sqrt
from statistics import fmean, variance

from gpulab.stats.statistics import CONFIDENCE, FEWEST, Interval, median, quantile

SPEEDUP_SPREAD = 0.012
"""Of the logarithm of a speedup between runs, at least: where a run's interval was +-1.6 %, it
held the median of all runs of an hour in 81 of 100, which is a spread of 1 % besides its own.
"""
COMPUTE_SPREAD, MEMORY_SPREAD = 0.019, 0.066
"""The same of times of identical code in two processes: compute-bound, and bound by memory."""
ENOUGH_RUNS = 8
"""Of both sides together, from which on the spread between runs is taken from them."""
_FEWEST_OF_A_SIDE = 3
_TRIMMED = 5
"""Of so many values one is cut off at each end."""
_NORMAL = 2.576
"""Standard deviations to each end of a 99 % interval."""


def are_in_turn(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether the runs of two sides alternated, by the times at which they started: from one
    to the next in time the side changes at least as often as the smaller one has runs.
    """
    order = sorted([(at, 0) for at in before] + [(at, 1) for at in after])
    changes = sum(first[1] != second[1] for first, second in pairwise(order))
    return changes >= min(len(before), len(after))


def difference(
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    floor: float,
    *,
    in_turn: bool = True,
    ratios: bool = True,
) -> Interval | None:
    """The interval of what `after` has more than `before`. Both are runs, each the logarithms that
    its processes measured. `in_turn`: the runs of both alternated. `ratios`: of two times that
    share their process; else times.

    None where there is too little for an interval: a run of fewer than 8 processes, unless there
    are enough runs.
    """
    sides = [[_RunMean.of(values) for values in runs if values] for runs in (before, after)]
    if not all(sides):
        return None
    counts = [len(side) for side in sides]
    change = _mean(sides[1]) - _mean(sides[0])
    if sum(counts) >= ENOUGH_RUNS and min(counts) >= _FEWEST_OF_A_SIDE:
        degrees = sum(counts) - 2
        between = sum(_run_variance(side) * (len(side) - 1) for side in sides) / degrees
        errors = [run.error for side in sides for run in side if run.degrees]
        if errors:  # copies of one file have no spread between them
            between = max(between, fmean(errors))
        half_width = quantile(CONFIDENCE, degrees) * sqrt(between * sum(1 / n for n in counts))
        shared = 2 * floor**2
    else:
        if not all(run.degrees for side in sides for run in side):
            return None
        degrees = sum(run.degrees for side in sides for run in side)
        errors = [run.error / len(side) ** 2 for side in sides for run in side]
        own = quantile(CONFIDENCE, degrees) * sqrt(sum(errors))
        spreads = [_spread(side, floor, ratios) / len(side) for side in sides]
        half_width = hypot(own, _NORMAL * sqrt(sum(spreads)))
        shared = sum(floor**2 * (1 - 1 / n) for n in counts)
    if not in_turn:
        half_width = hypot(half_width, _NORMAL * sqrt(shared))
    return Interval(change, change - half_width, change + half_width, sum(counts))


def least_difference(before: int, after: int, floor: float, *, in_turn: bool) -> float | None:
    """The share by which so many runs of each side must differ at least for `difference` to leave
    out 0; None where enough of them, made in turn, tell by their own spread.
    """
    if not in_turn:  # however many there are
        return expm1(_NORMAL * floor * sqrt(2))
    if before + after >= ENOUGH_RUNS and min(before, after) >= _FEWEST_OF_A_SIDE:
        return None
    return expm1(_NORMAL * floor * sqrt(1 / before + 1 / after))


@dataclass(frozen=True)
class _RunMean:
    middle: float
    variance: float
    """Of its processes."""
    error: float
    """The variance of the middle."""
    degrees: int
    """Of freedom; 0 where there are too few processes for an interval."""

    @classmethod
    def of(cls, values: Sequence[float]) -> _RunMean:
        ordered = sorted(values)
        n = len(ordered)
        if n < FEWEST:
            return cls(median(ordered), 0.0, 0.0, 0)
        cut = n // _TRIMMED
        kept = ordered[cut : n - cut]
        winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
        count = len(kept)
        error = variance(winsorized) * (n - 1) / (count * (count - 1))
        return cls(fmean(kept), variance(ordered), error, count - 1)


def _mean(runs: Sequence[_RunMean]) -> float:
    return fmean(run.middle for run in runs)


def _run_variance(runs: Sequence[_RunMean]) -> float:
    """The variance between runs, by themselves."""
    return variance(run.middle for run in runs) if len(runs) > 1 else 0.0


def _spread(runs: Sequence[_RunMean], floor: float, ratios: bool) -> float:
    """The variance that each run has besides its own error."""
    own = 0.0 if ratios else fmean(run.variance for run in runs)
    return max(floor**2, _run_variance(runs), own)
