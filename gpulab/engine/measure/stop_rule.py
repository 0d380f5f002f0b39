"""When a run has measured enough: after each process, by what all of them have shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import log

from gpulab.core.jobs import Measure, Required, TimeFunctions
from gpulab.core.statuses import Shows, StopReason
from gpulab.engine.measure.plan import CURVE_PROCESSES, FEWEST_CURVE_PROCESSES, PROCESSES
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.scenario import CONTROL
from gpulab.stats.comparison import (
    DECIDED_OF_EFFECT,
    FEWEST_ALONE,
    FEWEST_FIRST,
    INFLUENCED,
    LATER_OF_EFFECT,
    NARROW,
    SLOWED,
    are_decided,
    are_narrow,
    compared_with_baseline,
    is_narrow_time,
    is_settled,
    keys_of,
    left_out,
    pairs_of,
)
from gpulab.stats.series import EpochSeries, Quantity
from gpulab.stats.statistics import FEWEST, Interval


class StopRule:
    """Decides when one run stops: on width, or once the question of `--fail-below` is settled; else
    when its time is spent.
    """

    def __init__(self, job: Measure | TimeFunctions) -> None:
        self._job = job
        self._baseline = job.subject.variants[0].name
        self._series = EpochSeries(keys_of(job))
        self._firsts: defaultdict[str, list[float | None]] = defaultdict(list)
        """By variant, of each process in which it was built first: log(t / t_baseline) alone, and
        of the baseline log(t later / t then); None where there is no such figure.
        """
        self._alone: defaultdict[str, int] = defaultdict(int)
        """Processes in which a variant was timed alone."""
        self._processes = 0
        self._elapsed_s = 0.0
        """Of all processes but what the first one takes to prepare."""

    def reason(self, result: ProcessResult, process_s: float) -> StopReason | None:
        """Why the run stops with the process of this result, which took `process_s` seconds; None
        where it goes on.
        """
        self.add(result, process_s)
        if not result.candidates or result.baseline_lost:
            return StopReason.FAILED
        job = self._job
        if job.shows == Shows.CURVE:
            return self._reason_of_curves(len(result.candidates) - 1)
        if job.smoke:
            return StopReason.EPOCHS
        if self._is_baseline_alone(result):
            return StopReason.FAILED
        if self._processes < FEWEST:
            # the time of a function is compared with nothing: it may have no interval
            return self._spent() if isinstance(job, TimeFunctions) else None
        names = {candidate.name for candidate in result.candidates}
        required = job.required
        if required and self._is_settled(names, required):
            return StopReason.SETTLED
        if self._suspicious(names):
            return self._spent()
        # A narrow interval across what is required settles nothing, unless the width was asked for
        # as well.
        if (not required or job.width is not None) and self._is_narrow(names):
            return StopReason.WIDTH
        if job.brief and not required and self._are_decided(names):
            return StopReason.DECIDED
        return self._spent()

    def _is_baseline_alone(self, result: ProcessResult) -> bool:
        """Return whether all that were to be compared with it are wrong, failed, or cannot run."""
        infos = self._job.subject.variants
        left = {candidate.name for candidate in result.candidates}
        compared = [info.name for info in infos if info.against is not None]
        return bool(compared) and left.isdisjoint(compared)

    def _spent(self) -> StopReason | None:
        patience = 1.0 if self._processes >= PROCESSES else 1.3
        return StopReason.TIME if self._elapsed_s >= patience * self._job.time_s else None

    def _reason_of_curves(self, variants: int) -> StopReason | None:
        """The processes after the first take the variants in turn."""
        rounds = (self._processes - 1) // max(1, variants)
        if rounds >= (1 if self._job.smoke else CURVE_PROCESSES):
            return StopReason.EPOCHS
        if rounds >= FEWEST_CURVE_PROCESSES and self._elapsed_s >= self._job.time_s:
            return StopReason.TIME
        return None

    def add(self, result: ProcessResult, process_s: float) -> None:
        """Take a process into account, without a question."""
        first = self._processes == 0
        self._elapsed_s += result.start_s + result.measured_s if first else process_s
        for key, epochs in result.values:
            for values in epochs:
                self._series[key].add(self._processes, values)
        self._processes += 1
        for name in result.alone_s:
            self._alone[name] += 1
        if result.first is not None:
            self._firsts[result.first].append(self._value_of_first(result, result.first))

    def _value_of_first(self, result: ProcessResult, first: str) -> float | None:
        alone_s = result.alone_s
        if first == self._baseline:
            return result.slower
        if first not in alone_s or self._baseline not in alone_s:
            return None
        return log(alone_s[first] / alone_s[self._baseline])

    def _is_narrow(self, names: set[str]) -> bool:
        job = self._job
        if isinstance(job, TimeFunctions):  # their time is all there is to say of them
            times = (self._interval((name,)) for name in names)
            if not all(is_narrow_time(time, job.width or NARROW) for time in times):
                return False
        return are_narrow((self._interval(pair) for pair in pairs_of(job, names)), job.width)

    def extremes(self) -> set[str]:
        """The baseline and the variant that is the fastest beside it; all variants where none is
        compared with it.
        """
        infos = self._job.subject.variants
        pairs = [(name, self._baseline) for name in compared_with_baseline(self._job)]
        speedups = {
            pair[0]: -theta for pair in pairs if (theta := self._series[pair].rough()) is not None
        }
        if not speedups or self._job.shows != Shows.SPEEDUP:
            return {info.name for info in infos}
        return {self._baseline, max(speedups, key=lambda name: speedups[name])}

    def to_time_alone(self, result: ProcessResult) -> list[str]:
        """The variants that the next process times alone, in their order: the first before any
        other is built there.

        Variants take turns at being the first, the baseline and the fastest most often; one whose
        figures were all far from the rounds' has the turns that it takes to be sure.
        """
        if not self._job.alone or result.exclusive or result.baseline_lost:
            return []
        if not result.candidates or self._job.increasing_memory:
            return []
        extremes = self.extremes()
        measured = [facts.variant for facts in result.candidates if facts.name != CONTROL]
        turns = {name: len(self._firsts[name]) for name in measured}
        usual = measured
        if all(turns.values()):
            usual = [name for name in measured if name in extremes]
        first = min(
            self._suspicious(measured) or usual,
            key=lambda name: (turns[name], name == self._baseline, name not in extremes),
        )
        often = [name for name in extremes if name in measured and self._alone[name] < FEWEST_ALONE]
        return list(dict.fromkeys([first, self._baseline, *often]))

    def _suspicious(self, names: Iterable[str]) -> list[str]:
        """Variants whose figures alone seem to be others than in the rounds, and are too few."""
        return [name for name in names if self._is_suspicious(name)]

    def _is_suspicious(self, name: str) -> bool:
        """Most are far from the rounds', and one that was disturbed is not enough to acquit."""
        count = len(self._firsts[name])
        near = count - self._count_far(name)
        # after so many turns a variant that is far alone in most of them is not sure to be
        if near * 2 >= count or count >= 14:
            return False
        return count < FEWEST_FIRST or near > left_out(count)

    def _count_far(self, name: str) -> int:
        """Count a variant's figures alone that are far from those in the rounds."""
        values = [value for value in self._firsts[name] if value is not None]
        if name == self._baseline:
            return sum(value > log(SLOWED) for value in values)
        if (name, self._baseline) not in set(self._series):
            return 0
        theta = self._series[name, self._baseline].rough()
        if theta is None:
            return 0
        return sum(abs(value - theta) > log(INFLUENCED) for value in values)

    def _are_decided(self, names: set[str]) -> bool:
        of_effect = DECIDED_OF_EFFECT if self._processes < PROCESSES else LATER_OF_EFFECT
        pairs = pairs_of(self._job, names)
        return are_decided([self._interval(pair) for pair in pairs], of_effect)

    def _interval(self, key: Quantity) -> Interval | None:
        return self._series[key].interval()

    def _is_settled(self, names: set[str], required: Required) -> bool:
        """Return whether every comparison is known to reach what is required, or one not to."""
        if not isinstance(self._job, Measure):
            return False
        pairs = [pair for pair in pairs_of(self._job, names) if pair[0] != CONTROL]
        settled = [
            is_settled(self._series[pair].processes(), least)
            for pair in pairs
            if (least := required.of(pair[0])) is not None
        ]
        return bool(settled) and (False in settled or None not in settled)
