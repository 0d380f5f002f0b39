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
"""A relative difference between a solo run and the rounds that is too small to matter."""


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """The speedup of a solo run over that of the baseline, per item; no ends where a solo run has no interval.

    `heads` says why it stands before the interleaved speedup, where it does.
    """

    speedup: float
    low: float | None = None
    high: float | None = None
    heads: Finding | None = None


def ratio_of(before: Interval, after: Interval) -> Interval:
    """A quotient of two independent times, from end to end: wider than either interval makes it, never narrower."""
    ends = before.low / after.high, before.high / after.low
    return Interval(before.median / after.median, *ends, min(before.n, after.n))


def of_another_process(values: Sequence[float]) -> Interval:
    """Where the value of one more process may lie: as far from their median as those that are known lie apart.

    Of eight processes that is 2.8 standard deviations to each side; a solo run is of one process, too.
    """
    middle, apart = median(values), max(values) - min(values)
    return Interval(middle, middle - apart, middle + apart, len(values))


def differ(first: Interval, second: Interval) -> bool:
    """Whether two quantities lie apart: their intervals do, and their medians by more than `MARGIN`."""
    apart = first.high < second.low or second.high < first.low
    return apart and abs(first.median / second.median - 1) > MARGIN
