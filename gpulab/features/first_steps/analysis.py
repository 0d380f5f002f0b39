"""The curve of the first steps of fresh processes: what each takes, when they settle, and what they
cost until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from gpulab.stats.statistics import interval_of_sorted

SETTLED, _WINDOW = 1.1, 5
"""A step, and the median of so many from it on, takes no longer than this many times a settled
one.
"""
_TAIL = 3
"""The last third of the steps is taken as settled."""


@dataclass(frozen=True)
class Ends:
    """A median over processes with its interval; where there are too few for one, low and high are
    None.
    """

    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Curve:
    """Seconds: of each step in its place, of a settled one, and what the steps before cost beyond
    settled ones.

    After `settled_after` steps the next ones take at most 1.1 times a settled one; None where they
    do not settle.
    """

    steps: tuple[Ends, ...]
    settled: Ends
    settled_after: int | None
    excess: Ends


def curve_of(processes: Sequence[Sequence[float]]) -> Curve | None:
    """Of the first steps in each process, as many of them as all have; None without any."""
    count = min(map(len, processes), default=0)
    if not count:
        return None
    steps = tuple(over_processes([times[place] for times in processes]) for place in range(count))
    settled = [median(times[count - max(1, count // _TAIL) : count]) for times in processes]
    limit = SETTLED * median(settled)
    medians = [step.median for step in steps]
    settles = (
        place
        for place in range(count)
        if medians[place] <= limit and median(medians[place : place + _WINDOW]) <= limit
    )
    settled_after = next(settles, count)
    late = settled_after > count - max(1, count // _TAIL)
    costs = [
        sum(max(0.0, time_s - own) for time_s in times[:settled_after])
        for times, own in zip(processes, settled, strict=True)
    ]
    return Curve(
        steps, over_processes(settled), None if late else settled_after, over_processes(costs)
    )


def over_processes(values: Sequence[float]) -> Ends:
    """The median of one value a process, with its interval."""
    interval = interval_of_sorted(sorted(values))
    if interval is None:
        return Ends(median(values), None, None)
    return Ends(interval.median, interval.low, interval.high)
