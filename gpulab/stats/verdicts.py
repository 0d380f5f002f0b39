"""Whether two are apart, and by how much: the verdict of an interval, and its words on every face.

The low end of a 99 % interval above 1.01 is *faster*, its high end below 0.99 *slower*, the whole
of it within 0.98 to 1.02 *same*. However wide it is, it says that much; and what it says of *how*
much is its nearer end: at least 49.3x. All else is *inconclusive*, and excludes what lies outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log10
from typing import Protocol

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.statuses import Verdict
from gpulab.core.units import interval_end, times
from gpulab.stats.statistics import Interval, as_speedup

FLOOR = 0.01
SAME = 0.02
IMPRECISE = 3.0
"""How far apart the ends of an interval are that says little of how much."""
NEGLIGIBLE = 0.05
"""An effect that nobody asks about: where only one side excludes as much, that side is said."""
_SEEN = 0.02
"""A difference of a ratio from the quotient of two figures that a reader sees at once."""
_EXACT = 1e-9
"""What 0.04 as a binary number is off by is not rounded up to another per cent."""
_NO_EFFECT = (Verdict.SAME, Verdict.INCONCLUSIVE, Verdict.NO_DIFFERENCE)


class Judged(Protocol):
    """A verdict with the ends of the interval that it rests on, as each comparison has them."""

    @property
    def verdict(self) -> Verdict | None: ...
    @property
    def speedup(self) -> Estimate | None: ...


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a comparison's interval: the verdict in words, and its bound as a number.

    Of *faster* the speedup is at least, of *slower* at most so much. Of all else an effect that is
    larger is excluded: the variant takes at most `slower_at_most_share` more time, and is at most
    `faster_at_most_share` faster.
    """

    words: str
    bound: str = ""
    """Of these words the part that is a number, where the verdict alone says less."""
    at_least_ratio: float | None = None
    at_most_ratio: float | None = None
    slower_at_most_share: float | None = None
    faster_at_most_share: float | None = None
    imprecise: bool = False
    """Whether the ends lie over 3x apart."""


def verdict_of(theta: Interval) -> Verdict:
    """The verdict from the interval of theta = log(t_variant / t_baseline)."""
    speedup = as_speedup(theta)
    if speedup.low > 1 + FLOOR:
        return Verdict.FASTER
    if speedup.high < 1 - FLOOR:
        return Verdict.SLOWER
    if speedup.low >= 1 - SAME and speedup.high <= 1 + SAME:
        return Verdict.SAME
    return Verdict.INCONCLUSIVE


def shown(entry: Judged) -> Shown:
    """Return the words of a comparison; where there is no interval, its verdict alone."""
    verdict, speedup = entry.verdict, entry.speedup
    words = "" if verdict is None else str(verdict)
    if not words or speedup is None or not speedup.low or speedup.high is None:
        return Shown(words=words)
    low, high = speedup.ends
    imprecise = high > IMPRECISE * low
    # one that its sustained speedup contradicts lies on one side, and excludes nothing
    excludes = verdict in _NO_EFFECT and low <= 1 + FLOOR and high >= 1 - FLOOR
    bound = ""
    if excludes:
        bound = excluded(low, high)
    elif imprecise and verdict == Verdict.FASTER:
        bound = f"at least {interval_end(low)}x"
    elif imprecise and verdict == Verdict.SLOWER:
        bound = f"at most {interval_end(high)}x"
    if bound and (not excludes or verdict == Verdict.INCONCLUSIVE):
        words += f", {bound}"
    return Shown(
        words=words,
        bound=bound,
        at_least_ratio=low if verdict == Verdict.FASTER else None,
        at_most_ratio=high if verdict == Verdict.SLOWER else None,
        slower_at_most_share=max(0.0, 1 / low - 1) if excludes else None,
        faster_at_most_share=max(0.0, high - 1) if excludes else None,
        imprecise=imprecise,
    )


class _Stored(msgspec.Struct, frozen=True):
    """A comparison as JSON has it."""

    verdict: Verdict
    speedup: Estimate | None


def shown_in_json(verdict: str, speedup: object, beside: Mapping[str, object]) -> dict[str, object]:
    """Return the same of a comparison in JSON; of a run before, as the store has it, the ends stand
    `beside` the speedup.
    """
    if isinstance(speedup, float):
        speedup = {"value": speedup, "low": beside["low"], "high": beside["high"]}
    stored = msgspec.convert({"verdict": verdict, "speedup": speedup}, _Stored)
    words: dict[str, object] = msgspec.to_builtins(shown(stored))
    return words


def in_table(entry: Judged) -> str:
    """A verdict beside its interval: what an inconclusive one excludes stands below the table."""
    return str(entry.verdict) if entry.verdict == Verdict.INCONCLUSIVE else shown(entry).words


def in_bar(entry: Judged) -> str:
    """A comparison beside a bar, in 24 cells: its speedup and verdict, or else its bound."""
    found = shown(entry)
    if found.words == entry.verdict:
        return f"{times(entry.speedup)} {entry.verdict}"
    return found.bound if entry.verdict == Verdict.INCONCLUSIVE else found.words


def excluded(low: float, high: float) -> str:
    """Return what an interval around 1 leaves no room for, such as: no difference beyond 4 %."""
    slower, faster = max(0.0, 1 / low - 1), max(0.0, high - 1)
    if max(slower, faster) <= NEGLIGIBLE or min(slower, faster) > NEGLIGIBLE:
        return f"no difference beyond {_rounded_up(max(slower, faster))}"
    if slower < faster:
        return f"no slower than {_rounded_up(slower)}" if slower else "not slower"
    return f"no faster than {_rounded_up(faster)}" if faster else "not faster"


def is_quotient(ratio: float, above: float, below: float) -> bool:
    """Return whether a reader who divides the two figures beside a ratio finds about that ratio."""
    return abs(ratio * below / above - 1) <= _SEEN


def _rounded_up(share: float) -> str:
    if share < 1:
        return f"{max(1, ceil(100 * share - _EXACT))} %"
    places = 1 - floor(log10(1 + share))
    return f"{ceil((1 + share) * 10.0**places - _EXACT) / 10.0**places:g}x"
