"""From paired samples to a verdict.

A pair is two blocks of one round; a build is shared by all pairs of an epoch, and placement is the error
that pairing cannot see. So the values that carry the interval are epoch medians of log(t_variant /
t_baseline), never the pooled pairs, unless builds are too dear to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import median

import msgspec

from gpulab.model.stats import FEWEST, Interval, as_speedup, log_ratios, median_interval
from gpulab.model.telemetry import Window

FLOOR = 0.01
DEAR_FLOOR = 0.03
SAME = 0.02
NARROW = 0.01
"""Measuring stops early when the half-width of every interval is at most this."""
MOST_DROPPED = 0.2

Round = Mapping[str, float]
"""Time per item of each variant in one round, in seconds."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """All rounds on one build of every variant. Immutable, so its ratios are computed once."""

    rounds: tuple[Round, ...]
    spans: tuple[Mapping[str, tuple[float, float]], ...] = ()
    """When each block of each round began and ended, where that is known."""
    _ratios: dict[tuple[str, str], tuple[float, ...]] = field(default_factory=dict, repr=False)

    def ratios(self, variant: str, against: str) -> tuple[float, ...]:
        """log(t_variant / t_against) of every round that has both."""
        found = self._ratios.get((variant, against))
        if found is None:
            paired = [(one[variant], one[against]) for one in self.rounds if variant in one and against in one]
            found = tuple(log_ratios([after for after, _ in paired], [before for _, before in paired]))
            self._ratios[variant, against] = found
        return found

    def outside(self, windows: Sequence[Window]) -> Epoch:
        """The epoch without the blocks that touch a window, and so without their pairs."""
        if not windows or not self.spans:
            return self
        kept = [
            {name: time for name, time in one.items() if not _touches(spans.get(name), windows)}
            for one, spans in zip(self.rounds, self.spans, strict=True)
        ]
        return Epoch(tuple(kept), self.spans)

    def times(self, variant: str) -> list[float]:
        """Time per item of every round that measured the variant."""
        return [one[variant] for one in self.rounds if variant in one]


def _touches(span: tuple[float, float] | None, windows: Sequence[Window]) -> bool:
    return span is not None and any(span[0] < one.end and span[1] > one.start for one in windows)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One variant against another. Speedup > 1 is faster; None where nothing may be claimed."""

    variant: str
    against: str
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    mde: float | None = None
    pairs: int = 0
    dropped: int = 0
    verdict: str = "inconclusive"
    reason: str | None = None


def over_epochs(by_epoch: Iterable[Sequence[float]], *, dear: bool) -> Interval | None:
    """The interval over epoch medians; over all values where builds were too dear to have enough epochs."""
    found = [values for values in by_epoch if values]
    if dear and len(found) < FEWEST:
        return median_interval([value for values in found for value in values])
    return median_interval([median(values) for values in found])


def theta(epochs: Sequence[Epoch], variant: str, against: str, *, dear: bool) -> Interval | None:
    """The interval of log(t_variant / t_against)."""
    return over_epochs((epoch.ratios(variant, against) for epoch in epochs), dear=dear)


def verdict(of: Interval, floor: float) -> str:
    """faster, slower, same or inconclusive, from the interval of theta = log(t_variant / t_baseline)."""
    if of.high < -log(1 + floor):
        return "faster"
    if of.low > log(1 + floor):
        return "slower"
    if -log(1 + SAME) <= of.low and of.high <= log(1 + SAME):
        return "same"
    return "inconclusive"


def compare(
    epochs: Sequence[Epoch], variant: str, against: str, *, dear: bool = False, floor: float = FLOOR, dropped: int = 0
) -> Comparison:
    """Compare two variants of one run; `dropped` pairs were taken out for an outside cause before this."""
    pairs = sum(len(epoch.ratios(variant, against)) for epoch in epochs)
    blank = Comparison(variant=variant, against=against, pairs=pairs, dropped=dropped)
    of = theta(epochs, variant, against, dear=dear)
    if dropped > MOST_DROPPED * (pairs + dropped):
        return refused(blank, "invalid", f"{dropped} of {pairs + dropped} pairs dropped")
    if of is None:
        counted = f"{pairs} pairs" if dear else f"{sum(bool(one.ratios(variant, against)) for one in epochs)} epochs"
        return msgspec.structs.replace(blank, reason=f"{counted}: a 99 % interval needs {FEWEST}")
    speedup = as_speedup(of)
    mde = floor + 1.5 * of.half_width
    found, reason = verdict(of, floor), None
    if found == "inconclusive" and of.half_width <= NARROW:
        largest = max(abs(speedup.low - 1), abs(speedup.high - 1))
        reason = f"the interval is narrow, and lies across the edge of same: an effect of at most {largest:.1%}"
    elif found == "inconclusive":
        reason = f"an effect below {mde:.1%} cannot be told apart here: give it more --time, or a quieter machine"
    return msgspec.structs.replace(
        blank, speedup=speedup.median, low=speedup.low, high=speedup.high, mde=mde, verdict=found, reason=reason
    )


def refused(one: Comparison, verdict: str, reason: str | None) -> Comparison:
    """The comparison with a verdict that claims no speedup."""
    return msgspec.structs.replace(one, verdict=verdict, reason=reason, speedup=None, low=None, high=None, mde=None)


def narrow_time(epochs: Sequence[Epoch], variant: str, *, dear: bool) -> bool:
    """Whether the interval of a variant's own time is narrow enough to stop."""
    found = over_epochs((epoch.times(variant) for epoch in epochs), dear=dear)
    return found is not None and found.half_width <= NARROW * found.median


def narrow(epochs: Sequence[Epoch], pairs: Iterable[tuple[str, str]], *, dear: bool) -> bool:
    """Whether every interval is narrow enough to stop. Width only: stopping on significance finds false ones."""
    found = [theta(epochs, variant, against, dear=dear) for variant, against in pairs]
    return all(one is not None and one.half_width <= NARROW for one in found)
