"""A speedup beside those that earlier runs on this machine gave."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

FEWEST_TO_JUDGE = 6
_BEYOND = 0.5
"""Of the range of the earlier runs: the next of six alike lies outside of their range in one case of four, and its
interval beyond half of that range again in one of forty."""


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of the same file, parameters, device and versions on this machine, and the range of their speedups.

    `outside`: the interval lies beyond this range, by more than earlier runs differ among themselves.
    """

    runs: int
    low: float
    high: float
    outside: bool = False


def earlier_of(speedups: Sequence[float], interval: tuple[float, float] | None) -> Earlier | None:
    """What there is to say of a speedup with this interval; None where there are no earlier runs."""
    if not speedups:
        return None
    low, high = min(speedups), max(speedups)
    outside = False
    if interval is not None and len(speedups) >= FEWEST_TO_JUDGE:
        reach = (high / low) ** _BEYOND
        outside = interval[1] < low / reach or interval[0] > high * reach
    return Earlier(runs=len(speedups), low=low, high=high, outside=outside)
