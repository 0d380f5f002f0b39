"""The difference of a quantity between separate runs, which have no pairs between them.

A run's own interval says where its quantity lay during that run. The next run finds the machine in
another state, so each run gets a spread besides: that of its own processes, which was as large as
what runs in other minutes differed by (compute-bound, allocating and memory-bound pairs on a shared
machine), and never less than a floor. From enough runs the spread between them is known itself, as
long as both sides were made in turn: what last week and today differ by is in neither of two
folders, and counts in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import hypot, sqrt
from statistics import fmean, variance

from gpulab.stats.statistics import CONFIDENCE, Interval, correlated_interval, median, quantile

SPEEDUP_SPREAD = 0.012
"""Of the logarithm of a speedup between runs, at least: where a run's interval was +-1.6 %, it
held the median of all runs of an hour in 81 of 100, which is a spread of 1 % besides its own.
"""
COMPUTE_SPREAD, MEMORY_SPREAD = 0.019, 0.066
"""The same of times of identical code in two processes: compute-bound, and bound by memory."""
ENOUGH_RUNS = 8
"""Of both sides together, from which on the spread between runs is taken from them."""
_FEWEST_OF_A_SIDE = 3
_NORMAL = 2.576
"""Standard deviations to each end of a 99 % interval."""


def are_in_turn(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the runs of two sides alternated, by the times at which they started: from one to the
    next in time the side changes at least as often as the smaller one has runs.
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
) -> Interval | None:
    """The interval of what `after` has more than `before`. Both are runs, each the logarithms that
    its processes measured, in their order. `in_turn`: the runs of both alternated.

    None where there is too little for an interval: a run of fewer than 8 processes, unless there
    are enough runs.
    """
    sides = [[median(run) for run in runs if run] for runs in (before, after)]
    if not all(sides):
        return None
    counts = [len(side) for side in sides]
    change = fmean(sides[1]) - fmean(sides[0])
    if sum(counts) >= ENOUGH_RUNS and min(counts) >= _FEWEST_OF_A_SIDE:
        degrees = sum(counts) - 2
        pooled = sum(variance(side) * (len(side) - 1) for side in sides) / degrees
        known = [error for run in (*before, *after) if (error := _within(run)) is not None]
        if known:  # copies of one file have no spread between them
            pooled = max(pooled, fmean(known))
        half_width = quantile(CONFIDENCE, degrees) * sqrt(pooled * sum(1 / n for n in counts))
        shared = 2 * floor**2
    else:
        errors = _error(before, floor), _error(after, floor)
        if errors[0] is None or errors[1] is None:
            return None
        half_width = _NORMAL * sqrt(errors[0] + errors[1])
        shared = sum(floor**2 * (1 - 1 / n) for n in counts)
    if not in_turn:
        half_width = hypot(half_width, _NORMAL * sqrt(shared))
    return Interval(change, change - half_width, change + half_width, sum(counts))


def _error(runs: Sequence[Sequence[float]], floor: float) -> float | None:
    """The variance of the mean of runs; None where one of them has no interval."""
    measured = [run for run in runs if run]
    medians = [median(run) for run in measured]
    between = variance(medians) if len(medians) > 1 else 0.0
    total = 0.0
    for run in measured:
        within = _within(run)
        if within is None:
            return None
        total += within + max(floor**2, between, variance(run))
    return total / len(measured) ** 2


def _within(run: Sequence[float]) -> float | None:
    """The variance of a run's median, by its own interval; None where it has none."""
    interval = correlated_interval(run)
    return None if interval is None else (interval.half_width / _NORMAL) ** 2
