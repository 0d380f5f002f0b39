"""Speedups of variants that each ran alone, beside those of variants that were interleaved.

Interleaved variants share one power budget, one temperature and one cache; production runs one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from gpulab.analysis.statistics import Interval
from gpulab.protocol.finding import Finding

MARGIN = 0.03
"""A relative difference between alone and the rounds that is too small to matter."""
SLOWED, INFLUENCED = 1.25, 2.0
"""Times as long as before others were built, and as far from the speedup in the rounds, as no honest variant was seen
to be: first builds differ from later ones by 10 %, power caps and caches make up to 1.4, and JAX's eager operations on
an H200 made 1.63.
"""
FEWEST_ALONE, FEWEST_FIRST = 5, 4
"""Values of which the outermost hold the median with 94 %, and of which a large effect is believed in all of them."""


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """The speedup of a variant alone over that of the baseline, per item; no ends where there are too few processes.

    `heads` says why it stands before the interleaved speedup, where it does.
    """

    speedup: float
    low: float | None = None
    high: float | None = None
    processes: int = 0
    """In which both ran alone."""
    items_per_s: float | None = None
    heads: Finding | None = None


def alone_interval(values: Sequence[float], fewest: int = FEWEST_ALONE) -> Interval | None:
    """The median of values of variants alone, one of each process, and the outermost: None of fewer than so many.

    The next run's median of eight lies between them in 95 of 100 runs where there are eight.
    """
    if len(values) < fewest:
        return None
    return Interval(median(values), min(values), max(values), len(values))


def ratio_of(before: Interval, after: Interval) -> Interval:
    """A quotient of two independent times, from end to end: wider than either interval makes it, never narrower."""
    ends = before.low / after.high, before.high / after.low
    return Interval(before.median / after.median, *ends, min(before.n, after.n))


def of_another_process(values: Sequence[float]) -> Interval:
    """Where the value of one more process may lie: as far from their median as those that are known lie apart.

    Of eight processes that is 2.8 standard deviations to each side.
    """
    middle, apart = median(values), max(values) - min(values)
    return Interval(middle, middle - apart, middle + apart, len(values))


def differ(first: Interval, second: Interval) -> bool:
    """Whether two quantities lie apart: their intervals do, and their medians by more than `MARGIN`."""
    apart = first.high < second.low or second.high < first.low
    return apart and abs(first.median / second.median - 1) > MARGIN
