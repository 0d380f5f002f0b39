"""Tuning: which of many configurations is the fastest, found by elimination in rounds and a paired
final.

Measured one after the other, the machine's drift between the first candidate and the last is larger
than what separates good ones, and the least of many medians is a lucky one. So every round measures
each remaining candidate once, in random order; what they took, beyond their own times so far, is
taken as the machine's level meanwhile and divided out. The slower half leaves after 5 rounds, then
after more, until few are left. These begin anew: what eliminated the others says nothing of them,
since it chose them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, exp, log
from random import Random
from statistics import median

from gpulab.stats.comparison import leaders
from gpulab.stats.statistics import Interval, correlated_interval, for_comparisons
from gpulab.stats.verdicts import FLOOR

FINALISTS = 8
_FIRST_ROUNDS, _MORE_ROUNDS = 5, 1.4
"""Before the first elimination, and times as many before each next one."""
FEWEST_FINAL_ROUNDS = 12
_FLOOR, _NARROW = log(1 + FLOOR), FLOOR / 2
_TOO_SLOW = log(1.5)
"""What no drift makes up for: whoever takes so much longer than the best leaves at the next
elimination.
"""


class Tournament:
    """Candidates 0, 1, ... by their estimated seconds of a step; `order` and `add` in turn, round
    by round.
    """

    def __init__(
        self, estimates_s: Sequence[float], random: Random, finalists: int = FINALISTS
    ) -> None:
        self._random, self._finalists = random, finalists
        self._expected = [log(estimate) for estimate in estimates_s]
        """What a block of each is expected to take, as a logarithm."""
        self.alive = list(range(len(estimates_s)))
        self.final = False
        """Whether those that are left are in the final."""
        self._levelled: dict[int, list[float]] = {candidate: [] for candidate in self.alive}
        """Logarithms of times, less the machine's level in the round."""
        self.times_s: dict[int, list[float]] = {candidate: [] for candidate in self.alive}
        self._rounds, self._rounds_before_cut = 0, _FIRST_ROUNDS
        self._paired: dict[int, list[float]] = {}
        """Of the final: logarithms of the times, a round each."""
        self.reference = 0
        """The best before the final."""
        self._begin_final_if_few()

    def order(self) -> list[int]:
        """The next round, in random order."""
        return self._random.sample(self.alive, len(self.alive))

    def add(self, order: Sequence[int], times_s: Sequence[float]) -> None:
        """The seconds that each of a round took, in its order."""
        taken = [(candidate, log(time)) for candidate, time in zip(order, times_s, strict=True)]
        level = median(value - self._expected[candidate] for candidate, value in taken)
        for (candidate, value), time in zip(taken, times_s, strict=True):
            self.times_s[candidate].append(time)
            if self.final:
                self._paired[candidate].append(value)
            else:
                self._levelled[candidate].append(value - level)
        self._rounds += 1
        if self.final:
            return
        for candidate in self.alive:
            self._expected[candidate] = median(self._levelled[candidate])
        if self._rounds >= self._rounds_before_cut:
            self._rounds = 0
            self._rounds_before_cut = int(self._rounds_before_cut * _MORE_ROUNDS) + 1
            self._cut(max(self._finalists, len(self.alive) // 2))

    def begin_final(self) -> None:
        """With the best so far, where the time for elimination is over."""
        if not self.final:
            self._cut(self._finalists)

    @property
    def rounds(self) -> int:
        """Return the rounds of the final."""
        return self._rounds if self.final else 0

    @property
    def decided(self) -> bool:
        """Return whether the final can end: each finalist is slower than the best, or as good."""
        if not self.final or self._rounds < FEWEST_FINAL_ROUNDS:
            return False
        best, *_ = self.leaders()
        intervals = (self.interval(other, best) for other in self.alive if other != best)
        return all(interval.low > _FLOOR or interval.half_width < _NARROW for interval in intervals)

    def leaders(self) -> list[int]:
        """The best by the final, then those statistically tied with it. Needs
        `FEWEST_FINAL_ROUNDS`, or one left.
        """
        others = [other for other in self.alive if other != self.reference]
        best, *_ = leaders(
            self.reference, {other: self.against(other, self.reference) for other in others}
        )
        behind = {other: self.interval(other, best) for other in self.alive if other != best}
        tied = [other for other in behind if behind[other].low <= _FLOOR]
        return [best, *sorted(tied, key=lambda other: behind[other].median)]

    def interval(self, candidate: int, other: int) -> Interval:
        """The same as `against`, at a confidence that holds for all pairs of finalists: the best is
        chosen by them.
        """
        return for_comparisons(self.against(candidate, other), comb(len(self.alive), 2))

    def against(self, candidate: int, other: int) -> Interval:
        """log(time / time of the other) of two finalists, paired round by round. Needs
        `FEWEST_FINAL_ROUNDS`.
        """
        ratios = [a - b for a, b in zip(self._paired[candidate], self._paired[other], strict=True)]
        interval = correlated_interval(ratios)
        assert interval is not None
        return interval

    def ratio(self, candidate: int, best: int) -> float:
        """The time of any candidate over the best's: of a finalist by the final, else as far as it
        was measured.
        """
        if candidate in self._paired:
            return exp(self.against(candidate, best).median)
        return exp(self._expected[candidate] - self._expected[best])

    def _cut(self, keep: int) -> None:
        best, *others = sorted(self.alive, key=self._expected.__getitem__)[:keep]
        near = [
            other for other in others if self._expected[other] - self._expected[best] < _TOO_SLOW
        ]
        self.alive = [best, *(near or others[:1])]
        self._begin_final_if_few()

    def _begin_final_if_few(self) -> None:
        if len(self.alive) <= self._finalists:
            self.final = True
            self._rounds = 0
            self.alive.sort(key=self._expected.__getitem__)
            self.reference = self.alive[0]
            self._paired = {candidate: [] for candidate in self.alive}
