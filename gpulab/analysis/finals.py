"""Finals: contenders that are measured in turn and compared in pairs; the best, and what it cannot be told from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from gpulab.analysis.comparison import FLOOR
from gpulab.analysis.statistics import Interval, as_speedup
from gpulab.analysis.student import for_comparisons

Contender = TypeVar("Contender", bound=Hashable)


def leaders(reference: Contender, thetas: Mapping[Contender, Interval]) -> list[Contender]:
    """The best first, then those that it cannot be told from, the fastest first.

    `thetas` are log(time / time of the reference), paired. Told apart is what lies further from the best's interval
    than the floor: another build may differ by that. The intervals hold for all comparisons together.
    """
    speedups = {reference: Interval(1.0, 1.0, 1.0, 0)}
    speedups |= {other: as_speedup(for_comparisons(theta, len(thetas))) for other, theta in thetas.items()}
    best = max(speedups, key=lambda other: speedups[other].median)
    least = speedups[best].low / (1 + FLOOR)
    rest = [other for other in speedups if other != best and speedups[other].high >= least]
    return [best, *sorted(rest, key=lambda other: speedups[other].median, reverse=True)]
