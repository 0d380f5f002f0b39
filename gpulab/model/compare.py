"""From paired samples to a verdict.

A pair is two blocks of one round; a build is shared by all pairs of an epoch, and placement is the error
that pairing cannot see. So the values that carry the interval are epoch medians of log(t_variant /
t_baseline), never the pooled pairs, unless builds are too dear to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log, nan
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


@dataclass(frozen=True)
class Series:
    """What one epoch has of one quantity, and its median."""

    values: tuple[float, ...]
    median: float


_NOTHING = Series((), nan)


@dataclass(frozen=True, eq=False)
class Epoch:
    """All rounds on one build of every variant. Immutable, so each figure is computed once, not at every tick."""

    rounds: tuple[Round, ...]
    spans: tuple[Mapping[str, tuple[float, float]], ...] = ()
    """When each block of each round began and ended, where that is known."""
    _known: dict[tuple[str, ...], Series] = field(default_factory=dict, repr=False)
    _parts: dict[tuple[Window, ...], Epoch] = field(default_factory=dict, repr=False)

    def ratios(self, variant: str, against: str) -> Series:
        """log(t_variant / t_against) of every round that has both."""
        return self._once((variant, against), self._ratios)

    def times(self, variant: str) -> Series:
        """Time per item of every round that measured the variant."""
        return self._once((variant,), self._times)

    @cached_property
    def names(self) -> frozenset[str]:
        """Everything that it measured."""
        return frozenset(name for one in self.rounds for name in one)

    @cached_property
    def span(self) -> tuple[float, float]:
        """From its first block to the end of its last."""
        found = [span for one in self.spans for span in one.values()]
        return min((start for start, _ in found), default=inf), max((end for _, end in found), default=-inf)

    def outside(self, windows: Sequence[Window]) -> Epoch:
        """The epoch without the blocks that touch a window, and so without their pairs."""
        near = tuple(one for one in windows if _touches(self.span, one))
        if not near:
            return self
        found = self._parts.get(near)
        if found is None:
            kept = tuple(
                {name: time for name, time in one.items() if not any(_touches(spans[name], window) for window in near)}
                for one, spans in zip(self.rounds, self.spans, strict=True)
            )
            found = self._parts[near] = Epoch(kept, self.spans)
        return found

    def _once(self, names: tuple[str, ...], make: Callable[..., list[float]]) -> Series:
        found = self._known.get(names)
        if found is None:
            values = make(*names)
            found = self._known[names] = Series(tuple(values), median(values)) if values else _NOTHING
        return found

    def _ratios(self, variant: str, against: str) -> list[float]:
        paired = [(one[variant], one[against]) for one in self.rounds if variant in one and against in one]
        return log_ratios([after for after, _ in paired], [before for _, before in paired])

    def _times(self, variant: str) -> list[float]:
        return [one[variant] for one in self.rounds if variant in one]


def _touches(span: tuple[float, float], window: Window) -> bool:
    return span[0] < window.end and span[1] > window.start


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


def over_epochs(by_epoch: Iterable[Series], *, dear: bool) -> Interval | None:
    """The interval over epoch medians; over all values where builds were too dear to have enough epochs."""
    found = [one for one in by_epoch if one.values]
    if dear and len(found) < FEWEST:
        return median_interval([value for one in found for value in one.values])
    return median_interval([one.median for one in found])


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
    pairs = sum(len(epoch.ratios(variant, against).values) for epoch in epochs)
    blank = Comparison(variant=variant, against=against, pairs=pairs, dropped=dropped)
    of = theta(epochs, variant, against, dear=dear)
    if dropped > MOST_DROPPED * (pairs + dropped):
        return refused(blank, "invalid", f"{dropped} of {pairs + dropped} pairs dropped")
    if of is None:
        counted = (
            f"{pairs} pairs" if dear else f"{sum(bool(one.ratios(variant, against).values) for one in epochs)} epochs"
        )
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
