"""Epochs, and what is kept of them: a series of medians for each time and each ratio.

A pair is two blocks of one round; a build is shared by all pairs of an epoch, and where a build
lies in memory is the error that pairing cannot see. Builds of one process share its stack and heap,
its moment and its data, and the ratio of unlike variants drifts with the machine over seconds. So
the values that carry an interval are one for each process, the median of its epoch medians of
log(t_variant / t_baseline): never the pooled pairs. Where processes that follow each other are
alike, the interval is wider for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import median

from gpulab.stats.statistics import Interval, correlated_interval, log_ratios
from gpulab.stats.time_spans import Span, union

Pair = tuple[str, str]
"""A variant, and what it is compared with."""
Quantity = tuple[str, ...]
"""What a series is of: (name,) of a time, (variant, against) of a log-ratio."""


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
    """All rounds on one build of every variant: seconds per item, and when each block began and
    ended, if known.

    `process` is the one that measured it; None where that was not recorded, and an epoch counts as
    a process.
    """

    rounds: Sequence[Mapping[str, float]]
    spans: Sequence[Mapping[str, Span]] = ()
    process: int | None = None

    @property
    def blocks(self) -> int:
        return sum(map(len, self.rounds))

    @cached_property
    def start(self) -> float:
        return min((start for start, _ in self._all_spans()), default=inf)

    @cached_property
    def end(self) -> float:
        return max((end for _, end in self._all_spans()), default=0.0)

    def values(self, key: Quantity) -> list[float]:
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
        overlapping = self.overlapping(windows)
        clipped = ((max(each.start, self.start), min(each.end, self.end)) for each in overlapping)
        invalid = tuple(union(clipped))
        if not invalid:
            return self
        outside = self._outside.get(invalid)
        if outside is None:
            if len(self._outside) == 8:
                self._outside.clear()
            outside = self._outside[invalid] = self._drop(invalid)
        return outside

    def _drop(self, invalid: Sequence[Span]) -> Epoch:
        if not any(_touches(span, invalid) for span in self._all_spans()):
            return self
        rounds = [
            {name: time for name, time in times.items() if not _touches(spans[name], invalid)}
            for times, spans in zip(self.rounds, self.spans, strict=True)
        ]
        return Epoch(rounds, self.spans, self.process)

    @cached_property
    def _values(self) -> dict[Quantity, list[float]]:
        return {}

    @cached_property
    def _outside(self) -> dict[tuple[Span, ...], Epoch]:
        """By what is left out: a screen asks for the same four times a second."""
        return {}

    def _computed(self, key: Quantity) -> list[float]:
        if len(key) == 1:
            return [times[key[0]] for times in self.rounds if key[0] in times]
        variant, against = key
        both = [
            (times[variant], times[against])
            for times in self.rounds
            if variant in times and against in times
        ]
        return log_ratios([after for after, _ in both], [before for _, before in both])

    def _all_spans(self) -> Iterator[Span]:
        return (span for spans in self.spans for span in spans.values())


def _touches(span: Span, invalid: Sequence[Span]) -> bool:
    """Return whether a span shares time with any of some sorted, disjoint ones."""
    index = bisect_right(invalid, span[0], key=lambda other: other[1])
    return index < len(invalid) and invalid[index][0] < span[1]


ProcessValues = tuple[int | None, Sequence[float]]
"""The process of an epoch, and its values of one quantity."""


class Series:
    """One quantity over the processes of a run: the median of each, from the medians of its
    epochs.
    """

    def __init__(self) -> None:
        self.medians = array("d")
        """One for each process that has ended."""
        self.count = 0
        """Values behind them."""
        self._process: int | None = None
        self._epochs: list[float] = []
        """Epoch medians of the process under way."""
        self._interval: tuple[int, int, Interval | None] = (0, 0, None)

    def add(self, process: int | None, values: Sequence[float]) -> None:
        """The values of one epoch; of one that has none, nothing."""
        if not values:
            return
        self._close_before(process)
        self._process = process
        self._epochs.append(median(values))
        self.count += len(values)

    def processes(self, unsettled: Sequence[ProcessValues] = ()) -> list[float]:
        """The median of every process, in their order; `unsettled` are epochs that may still
        change.
        """
        more = [(process, median(values)) for process, values in unsettled if values]
        medians, process, epochs = list(self.medians), self._process, list(self._epochs)
        for other, value in more:
            if epochs and (other is None or other != process):
                medians.append(median(epochs))
                epochs = []
            process = other
            epochs.append(value)
        return [*medians, median(epochs)] if epochs else medians

    def interval(self, unsettled: Sequence[ProcessValues] = ()) -> Interval | None:
        """The interval over processes, wider by their correlation; None of fewer than carry one."""
        if any(values for _, values in unsettled):
            return correlated_interval(self.processes(unsettled))
        state = len(self.medians), len(self._epochs)
        if self._interval[:2] != state:
            self._interval = (*state, correlated_interval(self.processes()))
        return self._interval[2]

    def rough(self, unsettled: Sequence[ProcessValues] = ()) -> float | None:
        """The median of whatever there is, where there is too little for an interval."""
        medians = self.processes(unsettled)
        return median(medians) if medians else None

    def _close_before(self, process: int | None) -> None:
        if self._epochs and (process is None or process != self._process):
            self.medians.append(median(self._epochs))
            self._epochs = []


class EpochSeries:
    """The series of every time and every pair that may be asked for."""

    def __init__(self, keys: Iterable[Quantity]) -> None:
        self._series = {key: Series() for key in keys}
        self.epochs = 0

    def add(self, epoch: Epoch) -> None:
        self.epochs += 1
        for key, series in self._series.items():
            series.add(epoch.process, epoch.values(key))

    def __getitem__(self, key: Quantity) -> Series:
        return self._series[key]

    def __iter__(self) -> Iterator[Quantity]:
        return iter(self._series)
