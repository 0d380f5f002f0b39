"""From paired samples to a verdict: which pairs a job compares, what supports a verdict, and finals
of several contenders.

Interleaved variants share one power budget, one temperature and one cache; production runs one of
them.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb, log
from statistics import median
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, TimedJob, TimeFunctions
from gpulab.core.statuses import CheckKind, CheckState, Grade, IntervalUnit, Verdict
from gpulab.scenario import CONTROL
from gpulab.stats.findings import pairs_dropped, too_few_values
from gpulab.stats.series import Pair, Quantity
from gpulab.stats.statistics import (
    CONFIDENCE,
    FEWEST,
    Interval,
    as_speedup,
    correlated_interval,
    for_comparisons,
)
from gpulab.stats.verdicts import FLOOR, IMPRECISE, NEGLIGIBLE, verdict_of


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of check of a comparison: `result` is what it showed, or why it did not run."""

    kind: CheckKind
    state: CheckState
    result: Finding | None = None


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """The grade of a comparison with its reasons, and all checks in the order of `CheckKind`.

    `grade` is None where the comparison claims nothing: its verdict is wrong or invalid.
    """

    grade: Grade | None = None
    reasons: list[Finding] = []
    checks: list[Check] = []

    @property
    def ran(self) -> int:
        """Count the checks that ran."""
        return sum(check.state != CheckState.NOT_RUN for check in self.checks)


def grade_of(*, claims: bool, compared: bool, doubts: Sequence[Finding]) -> Grade | None:
    """`claims`: the verdict gives a speedup; `compared`: outputs were; `doubts`: what speaks
    against it.
    """
    if not claims:
        return None
    if not compared:
        return Grade.UNCHECKED
    return Grade.DOUBTFUL if doubts else Grade.VERIFIED


FEWEST_TO_JUDGE = 6
_RANGE_MARGIN = 0.5
"""Of the range of the earlier runs: the next of six alike lies outside of their range in one case
of four, and its interval beyond half of that range again in one of forty.
"""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of the same file, parameters, device and versions on this machine, and the range of
    their speedups.

    `outside`: the interval lies beyond this range, by more than earlier runs differ among
    themselves.
    """

    runs: int
    low: float
    high: float
    outside: bool = False


def earlier_of(speedups: Sequence[float], interval: tuple[float, float] | None) -> Earlier | None:
    """Return what there is to say of a speedup with this interval; None where there are no earlier
    runs.
    """
    if not speedups:
        return None
    low, high = min(speedups), max(speedups)
    outside = False
    if interval is not None and len(speedups) >= FEWEST_TO_JUDGE:
        reach = (high / low) ** _RANGE_MARGIN
        outside = interval[1] < low / reach or interval[0] > high * reach
    return Earlier(runs=len(speedups), low=low, high=high, outside=outside)


MARGIN = 0.03
"""A relative difference between alone and the rounds that is too small to matter."""
SLOWED, INFLUENCED = 1.25, 2.0
"""Times as long as before others were built, and as far from the speedup in the rounds, as no
honest variant was seen to be: first builds differ from later ones by 10 %, power caps and caches
make up to 1.4, and JAX's eager operations on an H200 made 1.63.
"""
FEWEST_ALONE, FEWEST_FIRST = 5, 4
"""Values of which the outermost hold the median with 94 %, and of which a large effect is believed
in all of them: of more values see `left_out`.
"""


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """The speedup of a variant alone over that of the baseline, per item; no ends where there are
    too few processes.

    `headline_reason` says why it stands before the interleaved speedup, where it does.
    """

    speedup: Estimate
    """Of the processes in which both ran alone."""
    items_per_s: float | None = None
    headline_reason: Finding | None = msgspec.field(default=None, name="heads")


def outermost_interval(values: Sequence[float], fewest: int = FEWEST_ALONE) -> Interval | None:
    """The median of values, one of each process, and the outermost: None of fewer than so many.

    The next run's median of eight lies between them in 95 of 100 runs where there are eight.
    """
    if len(values) < fewest:
        return None
    return Interval(median(values), min(values), max(values), len(values))


def left_out(count: int) -> int:
    """Return how many of the lowest of so many values may lie below what the median is said to lie
    above: as sure as of `FEWEST_FIRST` none may.

    Of fourteen it is three. Were it none, each value more would be one more chance for a disturbed
    one to hide what all others show.
    """
    fewer, ways = 0, 1
    while ways * 2**FEWEST_FIRST <= 2**count:
        fewer += 1
        ways += comb(count, fewer)
    return max(0, fewer - 1)


def inner_interval(values: Sequence[float]) -> Interval | None:
    """The median of values, one of each process, between those that hold it as surely as the
    outermost of `FEWEST_FIRST`; None of fewer.
    """
    if len(values) < FEWEST_FIRST:
        return None
    ordered = sorted(values)
    out = left_out(len(values))
    return Interval(median(values), ordered[out], ordered[-1 - out], len(values))


def ratio_of(before: Interval, after: Interval) -> Interval:
    """A quotient of two independent times, from end to end: wider than either interval makes it,
    never narrower.
    """
    ends = before.low / after.high, before.high / after.low
    return Interval(before.median / after.median, *ends, min(before.n, after.n))


def of_another_process(values: Sequence[float]) -> Interval:
    """Return where the value of one more process may lie: as far from their median as those that
    are known lie apart.

    Of eight processes that is 2.8 standard deviations to each side.
    """
    middle, apart = median(values), max(values) - min(values)
    return Interval(middle, middle - apart, middle + apart, len(values))


def differ(first: Interval, second: Interval) -> bool:
    """Return whether two quantities lie apart: their intervals do, and their medians by more than
    `MARGIN`.
    """
    apart = first.high < second.low or second.high < first.low
    return apart and abs(first.median / second.median - 1) > MARGIN


NARROW = 0.01
"""Measuring stops early when the half-width of every interval is at most this."""
_NARROW_OF_EFFECT = 0.02
"""Of the log-ratio: 1.4 % of 2x, 7 % of 40x."""
DECIDED_OF_EFFECT, LATER_OF_EFFECT = 0.1, 0.25
"""The same of a run that nobody asked for more: 7 % of 2x; and of one that has had all processes it
was planned for. Where processes differ so much, some more of them tell nothing that could be used.
"""
_NO_EFFECT = (Verdict.SAME, Verdict.INCONCLUSIVE)
MOST_DROPPED = 0.2
_MOST_RANKED = 24
"""Of more variants the best is known by intervals that lie apart: each pair of them costs a
series.
"""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One variant against another. Speedup > 1 is faster; None where nothing may be claimed.

    `mde` is the minimum detectable effect, `dropped` the pairs left out for an outside cause.
    """

    variant: str
    against: str
    speedup: Estimate | None = None
    mde: float | None = None
    pairs: int = 0
    dropped: int = 0
    verdict: Verdict = Verdict.INCONCLUSIVE
    reason: Finding | None = None
    sustained: Sustained | None = None
    """Each by itself; None where one of them had no solo run that compares."""
    trust: Trust | None = None
    earlier: Earlier | None = None
    """What runs before this one gave; None where there are none."""


def pairs_of(job: TimedJob, measured: Container[str]) -> list[Pair]:
    """(variant, against) of every comparison that can be made of what is measured: the control's
    first; of a variant that over the baseline, then that over another one that it names.
    """
    if isinstance(job, TimeFunctions):
        baseline = next((info.name for info in job.subject.variants if info.name in measured), None)
        return [] if baseline is None else [(CONTROL, baseline)]
    assert isinstance(job, Measure)
    first, *others = job.subject.variants
    if first.name not in measured:
        return []
    pairs = [(CONTROL, first.name)]
    with_baseline = compared_with_baseline(job)
    below = first.name
    for info in others:
        if info.name not in measured or info.against is None:
            continue
        denominators = [first.name] if info.name in with_baseline else []
        denominators += [info.against, *([below] if job.ladder else [])]
        pairs += [(info.name, name) for name in dict.fromkeys(denominators) if name in measured]
        below = info.name
    return pairs


def compared_with_baseline(job: Measure | TimeFunctions) -> list[str]:
    """Return the variants that name the first, or one that is compared with the first itself."""
    infos = job.subject.variants
    names = [infos[0].name] if infos else []
    for info in infos[1:]:
        if info.against in names:
            names.append(info.name)
    return names[1:]


def keys_of(job: TimedJob) -> list[Quantity]:
    """Every time and every pair that may be asked for, whichever variants come to be measured."""
    if not isinstance(job, (Measure, TimeFunctions)):
        return [(CONTROL,)]
    infos = job.subject.variants
    names = [info.name for info in infos]
    keys: dict[Quantity, None] = {(name,): None for name in (*names, CONTROL)}
    keys |= {
        (CONTROL, name): None for name in (names if isinstance(job, TimeFunctions) else names[:1])
    }
    for index, info in enumerate(infos):
        below = names[:index] if isinstance(job, Measure) and job.ladder else []
        if info.against is not None:
            keys |= {(info.name, against): None for against in (info.against, *below)}
    with_baseline = compared_with_baseline(job)
    keys |= {(name, names[0]): None for name in with_baseline}
    # which of these is the best is a comparison of two
    ranked = with_baseline[: _MOST_RANKED - 1]
    keys |= {(later, earlier): None for earlier, later in combinations(ranked, 2)}
    return list(keys)


def compare(
    pair: Pair,
    theta: Interval | None,
    *,
    pairs: int,
    units: int,
    unit: IntervalUnit = IntervalUnit.PROCESSES,
    dropped: int = 0,
) -> Comparison:
    """Compare two variants of one run by the interval of log(t_variant / t_against).

    `pairs` in so many `units` are left of what was measured; `dropped` were left out for an outside
    cause before this.
    """
    blank = Comparison(variant=pair[0], against=pair[1], pairs=pairs, dropped=dropped)
    if dropped > MOST_DROPPED * (pairs + dropped):
        return refused(
            blank, Verdict.INVALID, pairs_dropped(dropped=dropped, pairs=pairs + dropped)
        )
    if theta is None:
        return replace(blank, reason=too_few_values(count=units, unit=unit.value, needed=FEWEST))
    speedup = as_speedup(theta)
    verdict = verdict_of(theta)
    if pair[0] == CONTROL and verdict in _NO_EFFECT and speedup.low <= 1 <= speedup.high:
        verdict = Verdict.NO_DIFFERENCE
    return replace(
        blank,
        speedup=speedup.estimate,
        mde=FLOOR + 1.5 * theta.half_width,
        verdict=verdict,
    )


def refused(comparison: Comparison, verdict: Verdict, reason: Finding | None) -> Comparison:
    """The comparison with a verdict that claims no speedup."""
    return replace(comparison, verdict=verdict, reason=reason, speedup=None, mde=None)


def is_narrow_time(time: Interval | None, width: float = NARROW) -> bool:
    """Return whether the interval of a variant's own time is narrow enough to stop."""
    return time is not None and time.half_width <= width * time.median


def are_narrow(thetas: Iterable[Interval | None], width: float | None = None) -> bool:
    """Return whether every interval is narrow enough to stop. Width only: stopping on significance
    finds false effects.

    Without a `width` that was asked for, one that is narrow beside its effect is enough: of 40x
    nobody needs 1 %.
    """
    return all(
        theta is not None and theta.half_width <= (width or _narrow(theta)) for theta in thetas
    )


def are_decided(thetas: Sequence[Interval | None], of_effect: float = DECIDED_OF_EFFECT) -> bool:
    """Return whether each comparison is known within a share of its effect, or to have none of 5 %;
    the control, which is the first as in `pairs_of`, to have none.

    Of 48,000 simulated runs in which nothing differed and that were looked at after every process
    from the eighth on, with medians that were normal, heavy-tailed or correlated by 0.5, none was
    decided with a false verdict.
    """
    known = [theta for theta in thetas if theta is not None]
    if len(known) < max(2, len(thetas)):
        return False
    control, *others = known
    effects = [theta for theta in others if not _is_negligible(theta)]
    if any(theta.half_width > _decided_width(theta, of_effect) for theta in effects):
        return False
    if verdict_of(control) not in _NO_EFFECT:
        return False
    if not effects:
        return _is_negligible(control)
    return all(control.half_width <= _decided_width(theta, of_effect) for theta in effects)


def _decided_width(theta: Interval, of_effect: float) -> float:
    return min(log(IMPRECISE) / 2, max(NARROW, of_effect * abs(theta.median)))


def _is_negligible(theta: Interval) -> bool:
    """Return whether no effect is claimed, and none of 5 % is possible."""
    within = -log(1 + NEGLIGIBLE) <= theta.low and theta.high <= log(1 + NEGLIGIBLE)
    return within and verdict_of(theta) in _NO_EFFECT


def _narrow(theta: Interval) -> float:
    return max(NARROW, _NARROW_OF_EFFECT * abs(theta.median))


def is_settled(units: Sequence[float], required: float) -> bool | None:
    """Return whether a speedup reaches what is required, by the log-ratios of each unit in their
    order; None: not yet known.

    Looking again and again finds false effects, so it looks at 8, 16, 32, ... units alone, at half
    the error each time: of all looks together 1 in 100 is wrong at most.
    """
    looks = FEWEST
    confidence = CONFIDENCE
    while looks * 2 <= len(units):
        looks, confidence = looks * 2, (1 + confidence) / 2
    theta = correlated_interval(units[:looks], confidence)
    if theta is None:
        return None
    speedup = as_speedup(theta)
    if speedup.low < required <= speedup.high:
        return None
    return speedup.low >= required


Contender = TypeVar("Contender", bound=Hashable)


def leaders(reference: Contender, thetas: Mapping[Contender, Interval]) -> list[Contender]:
    """The best first, then those that it cannot be told from, the fastest first.

    `thetas` are log(time / time of the reference), paired. Told apart is what lies further from the
    best's interval than the floor: another build may differ by that. The intervals hold for all
    comparisons together.
    """
    speedups = {reference: Interval(1.0, 1.0, 1.0, 0)}
    speedups |= {
        other: as_speedup(for_comparisons(theta, len(thetas))) for other, theta in thetas.items()
    }
    best = max(speedups, key=lambda other: speedups[other].median)
    least = speedups[best].low / (1 + FLOOR)
    rest = [other for other in speedups if other != best and speedups[other].high >= least]
    return [best, *sorted(rest, key=lambda other: speedups[other].median, reverse=True)]
