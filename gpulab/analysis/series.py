"""Epochs, and what is kept of them: a series of medians for each time and each ratio.

A pair is two blocks of one round; a build is shared by all pairs of an epoch, and where a build lies in memory is the
error that pairing cannot see. So the values that carry an interval are epoch medians of log(t_variant / t_baseline),
never the pooled pairs, unless builds are too expensive to repeat.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import median

from gpulab.analysis.statistics import FEWEST, Interval, interval_of_sorted, log_ratios, median_interval
from gpulab.analysis.time_spans import Span, union

Pair = tuple[str, str]
"""A variant, and what it is compared with."""
Key = tuple[str, ...]
"""What a series is of: (name,) of a time, (variant, against) of a log-ratio."""
_FEW = 16
"""So many values are cheaper to insert into sorted ones than to sort with them: a live report adds one or two."""


@dataclass(frozen=True)
class Window:
    """A stretch of time in which nothing can be believed: a code, and the names that go with it."""

    start: float
    end: float
    code: str
    names: tuple[str, ...]

    @property
    def cause(self) -> tuple[str, tuple[str, ...]]:
        return self.code, self.names


@dataclass(frozen=True)
class Epoch:
    """All rounds on one build of every variant: seconds per item, and when each block began and ended, if known."""

    rounds: Sequence[Mapping[str, float]]
    spans: Sequence[Mapping[str, Span]] = ()

    @property
    def blocks(self) -> int:
        return sum(map(len, self.rounds))

    @cached_property
    def start(self) -> float:
        return min((start for start, _ in self._all_spans()), default=inf)

    @cached_property
    def end(self) -> float:
        return max((end for _, end in self._all_spans()), default=0.0)

    def values(self, key: Key) -> list[float]:
        """Times of a variant, or log-ratios of a pair, of every round that has them."""
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = self._computed(key)
        return values

    def overlapping(self, windows: Iterable[Window]) -> list[Window]:
        """The windows that share time with the stretch from the first block to the last."""
        return [window for window in windows if window.start < self.end and window.end > self.start]

    def outside(self, windows: Iterable[Window]) -> Epoch:
        """The epoch without the blocks that touch a window, and so without their pairs."""
        invalid = union((window.start, window.end) for window in self.overlapping(windows))
        if not invalid or not any(_touches(span, invalid) for span in self._all_spans()):
            return self
        rounds = [
            {name: time for name, time in times.items() if not _touches(spans[name], invalid)}
            for times, spans in zip(self.rounds, self.spans, strict=True)
        ]
        return Epoch(rounds, self.spans)

    @cached_property
    def _values(self) -> dict[Key, list[float]]:
        return {}

    def _computed(self, key: Key) -> list[float]:
        if len(key) == 1:
            return [times[key[0]] for times in self.rounds if key[0] in times]
        variant, against = key
        both = [(times[variant], times[against]) for times in self.rounds if variant in times and against in times]
        return log_ratios([after for after, _ in both], [before for _, before in both])

    def _all_spans(self) -> Iterator[Span]:
        return (span for spans in self.spans for span in spans.values())


def _touches(span: Span, invalid: Sequence[Span]) -> bool:
    """Whether a span shares time with any of some sorted, disjoint ones."""
    index = bisect_right(invalid, span[0], key=lambda other: other[1])
    return index < len(invalid) and invalid[index][0] < span[1]


class Series:
    """One quantity over the epochs: the median of each, and all values only as long as there are few epochs."""

    def __init__(self) -> None:
        self.medians = array("d")
        self.count = 0
        """Values behind the medians."""
        self._pool: list[float] = []
        self._ordered: list[float] = []
        self._interval: tuple[int, Interval | None] = (0, None)

    def add(self, values: Sequence[float]) -> None:
        """The values of one epoch; of one that has none, nothing."""
        if not values:
            return
        self.medians.append(median(values))
        self.count += len(values)
        if len(self.medians) < FEWEST:
            self._pool.extend(values)
        else:
            self._pool.clear()

    def interval(self, unsettled: Sequence[Sequence[float]] = (), *, expensive: bool = False) -> Interval | None:
        """The interval over epoch medians; over all values where builds were too expensive to have enough epochs.

        `unsettled` are values of epochs that may still change.
        """
        more = [values for values in unsettled if values]
        if expensive and len(self.medians) + len(more) < FEWEST:
            return median_interval([*self._pool, *(value for values in more for value in values)])
        if not more:
            if self._interval[0] != len(self.medians):
                self._interval = len(self.medians), interval_of_sorted(self._sorted())
            return self._interval[1]
        ordered = [*self._sorted()]
        for values in more:
            insort(ordered, median(values))
        return interval_of_sorted(ordered)

    def rough(self, unsettled: Sequence[Sequence[float]] = ()) -> float | None:
        """The median of whatever there is, where there is too little for an interval."""
        more = [value for values in unsettled for value in values]
        pool = [*(self._pool or self.medians), *more]
        return median(pool) if pool else None

    def _sorted(self) -> list[float]:
        recent = self.medians[len(self._ordered) :]
        if len(recent) <= _FEW:
            for value in recent:
                insort(self._ordered, value)
        else:
            self._ordered.extend(recent)
            self._ordered.sort()
        return self._ordered


class EpochSeries:
    """The series of every time and every pair that may be asked for."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._series = {key: Series() for key in keys}
        self.epochs = 0

    def add(self, epoch: Epoch) -> None:
        self.epochs += 1
        for key, series in self._series.items():
            series.add(epoch.values(key))

    def __getitem__(self, key: Key) -> Series:
        return self._series[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._series)
