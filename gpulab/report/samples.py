"""Blocks folded into epochs: of a complete and settled epoch only its medians are kept. Blocks that
overlap an invalid window are dropped first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from gpulab.core.events import Samples
from gpulab.stats.series import Epoch, EpochSeries, Pair, ProcessValues, Quantity, Window
from gpulab.stats.statistics import Interval
from gpulab.stats.time_spans import Span

_Rounds = dict[int, tuple[dict[str, float], dict[str, Span]]]
"""Of an open epoch: round number to seconds per item and spans, by name."""
_Cause = tuple[str, tuple[str, ...]]


class InvalidWindows:
    """Windows of time in which samples do not count, each for a cause: a code with its names.

    They are added in order. The last window of a code stays open until the next one of that code
    begins, or it is closed.
    """

    def __init__(self) -> None:
        self._by_cause: dict[_Cause, list[Window]] = {}
        """Of each cause sorted and disjoint."""
        self._order: dict[_Cause, int] = {}
        """Causes in the order in which they appeared, also those whose windows are all dropped."""
        self._open: dict[str, Window] = {}
        """The last window, by code."""

    def begin(self, window: Window) -> None:
        """A window that lasts as long as it says, or until it is closed."""
        self._order.setdefault(window.cause, len(self._order))
        self._open[window.code] = window

    def close(self, code: str, end: float) -> None:
        """The open window of a code, where there is one, ends."""
        if window := self._open.pop(code, None):
            closed = Window(window.start, end, window.code, window.names)
            _merge(self._by_cause.setdefault(closed.cause, []), closed)

    def drop(self, until: float) -> None:
        """Drop the windows that end by `until`: no later call is about blocks that began before."""
        for cause, windows in list(self._by_cause.items()):
            self._by_cause[cause] = [window for window in windows if window.end > until]
            if not self._by_cause[cause]:
                del self._by_cause[cause]

    def all(self) -> list[Window]:
        """All that are not dropped, by their code; overlapping windows of one cause are merged."""
        merged = {cause: [*windows] for cause, windows in self._by_cause.items()}
        for window in self._open.values():
            _merge(merged.setdefault(window.cause, []), window)
        causes = sorted(merged, key=lambda cause: (cause[0], self._order[cause]))
        return [window for cause in causes for window in merged[cause]]


def _merge(windows: list[Window], window: Window) -> None:
    if windows and window.start <= windows[-1].end:
        end = max(windows[-1].end, window.end)
        window = Window(windows.pop().start, end, window.code, window.names)
    windows.append(window)


class SampleState:
    """The samples of a run so far."""

    def __init__(self, keys: Iterable[Quantity]) -> None:
        self.series = EpochSeries(keys)
        self.measured: set[str] = set()
        """Everything that a complete epoch holds."""
        self.epochs = self.rounds = self.blocks = 0
        """Complete epochs, their rounds, and their blocks."""
        self.start = inf
        """Of all blocks, as is `end`."""
        self.end = -inf
        self.unsettled: deque[Epoch] = deque()
        """Complete epochs of which blocks may still be dropped."""
        self.dropped_pairs: Counter[Pair] = Counter()
        self.dropped_blocks: Counter[_Cause] = Counter()
        """Both of the settled epochs."""
        self.windows = InvalidWindows()
        self.final_until = inf
        """Until when no later event can add a window."""
        self._open: dict[int, _Rounds] = {}
        self._begun: dict[int, float] = {}
        """When the first block of each open epoch began."""
        self._complete_below = 0
        self.first_epochs: list[int] = []
        """Of each process that measured."""

    @property
    def all_rounds(self) -> int:
        """Rounds so far, those of the epoch under way too."""
        return self.rounds + sum(map(len, self._open.values()))

    @property
    def undecided_from(self) -> float:
        """When the first block began that may still be dropped; blocks to come begin after those
        that are known.
        """
        unsettled = (epoch.start for epoch in self.unsettled)
        return min([self.end, *unsettled, *self._begun.values()])

    def add(self, event: Samples, items: Mapping[str, float]) -> None:
        """One batch; `items` per step by name."""
        divisors = [items.get(name, 1.0) for name in event.names]
        for epoch, number, index, time_s, end, block_steps in event.blocks():
            if epoch < self._complete_below:  # it is complete, and no block of it can be to come
                continue
            start = end - time_s * block_steps
            rounds = self._open.get(epoch)
            if rounds is None:
                rounds = self._open[epoch] = {}
                self._begun[epoch] = start
            times_and_spans = rounds.get(number)
            if times_and_spans is None:
                times_and_spans = rounds[number] = {}, {}
            name = event.names[index]
            times_and_spans[0][name] = time_s / divisors[index]
            times_and_spans[1][name] = start, end
            if start < self.start:
                self.start = start
            if end > self.end:
                self.end = end
        self._complete(event.complete)

    def close(self) -> None:
        """Nothing more will come: what is open counts as complete."""
        self._complete(max(self._open, default=-1) + 1)

    def settle(self, until: float) -> None:
        """Reduce every epoch that ended before `until`, from when on windows may still be added, to
        its medians.
        """
        if not self.unsettled or self.unsettled[0].end > until:
            return
        windows = self.windows.all()
        while self.unsettled and self.unsettled[0].end <= until:
            epoch = self.unsettled.popleft()
            valid = epoch.outside(windows)
            self.series.add(valid)
            if valid is not epoch:
                self.dropped_pairs += self.lost_pairs(epoch, valid)
                self.dropped_blocks += _lost_blocks(epoch, windows)
        self.windows.drop(self.undecided_from)

    def view(self) -> SampleView:
        """Return the samples outside of the windows, as they are now."""
        return SampleView(self, self.windows.all())

    def lost_pairs(self, epoch: Epoch, valid: Epoch) -> Counter[Pair]:
        """Return the number of pairs of an epoch that are not in its valid part."""
        pairs = [(key[0], key[1]) for key in self.series if len(key) == 2]
        return Counter({pair: len(epoch.values(pair)) - len(valid.values(pair)) for pair in pairs})

    def open_values(self, name: str) -> list[float]:
        """Times of the epochs under way."""
        values = []
        for rounds in self._open.values():
            values += [times[name] for times, _ in rounds.values() if name in times]
        return values

    def _complete(self, complete: int) -> None:
        """Close every epoch below `complete`."""
        for epoch_number in sorted(other for other in self._open if other < complete):
            rounds = self._open.pop(epoch_number)
            del self._begun[epoch_number]
            order = sorted(rounds)
            process: int | None = None
            if self.first_epochs:
                process = bisect_right(self.first_epochs, epoch_number) - 1
            epoch = Epoch(
                [rounds[number][0] for number in order],
                [rounds[number][1] for number in order],
                process,
            )
            self.epochs += 1
            self.rounds += len(order)
            self.blocks += epoch.blocks
            self.measured |= {name for times in epoch.rounds for name in times}
            self.unsettled.append(epoch)
        self._complete_below = max(self._complete_below, complete)


class SampleView:
    """Intervals and counts of what is left outside of some windows."""

    def __init__(self, history: SampleState, windows: Sequence[Window]) -> None:
        self._history = history
        self._windows = windows
        self._kept = [epoch.outside(windows) for epoch in history.unsettled]

    def interval(self, key: Quantity) -> Interval | None:
        """The interval of a time in seconds per item, or of a log-ratio."""
        return self._history.series[key].interval(self._values(key))

    def units(self, key: Quantity) -> list[float]:
        """The values that the interval is over, in their order."""
        return self._history.series[key].processes(self._values(key))

    def rough(self, name: str) -> float | None:
        """Median seconds per item of whatever there is, also of the epoch under way."""
        return self._history.series[(name,)].rough(
            [*self._values((name,)), (None, self._history.open_values(name))]
        )

    def counts(self, pair: Pair) -> tuple[int, int, int]:
        """(pairs left, units of the interval, pairs dropped)."""
        valid = sum(len(epoch.values(pair)) for epoch in self._kept)
        whole = sum(len(epoch.values(pair)) for epoch in self._history.unsettled)
        pairs = self._history.series[pair].count + valid
        dropped = self._history.dropped_pairs[pair] + whole - valid
        return pairs, len(self.units(pair)), dropped

    def dropped_blocks(self) -> dict[_Cause, int]:
        """Blocks that touch a window, by its cause."""
        dropped = Counter(self._history.dropped_blocks)
        for epoch in self._history.unsettled:
            dropped += _lost_blocks(epoch, self._windows)
        return dict(dropped)

    def _values(self, key: Quantity) -> list[ProcessValues]:
        return [(epoch.process, epoch.values(key)) for epoch in self._kept]


def _lost_blocks(epoch: Epoch, windows: Sequence[Window]) -> Counter[_Cause]:
    by_cause: dict[_Cause, list[Window]] = {}
    for window in epoch.overlapping(windows):
        by_cause.setdefault(window.cause, []).append(window)
    lost = {cause: epoch.blocks - epoch.outside(group).blocks for cause, group in by_cause.items()}
    return Counter(lost)
