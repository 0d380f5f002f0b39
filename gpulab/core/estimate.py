"""A value that was measured, with the interval in which the true one lies."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


def value_of(estimate: Estimate | None) -> float | None:
    """Return the value of an estimate, where there is one."""
    return estimate.value if estimate else None


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A median of `n` values with the ends of its interval; no ends where there are too few.

    `n` is None where the values were not counted.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None

    @property
    def has_interval(self) -> bool:
        """Return whether there were values enough for one."""
        return self.low is not None and self.high is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the interval, low and high; the value where there is none."""
        if self.low is None or self.high is None:
            return self.value, self.value
        return self.low, self.high

    def over(self, count: float) -> Estimate:
        """Return the estimate of one of `count` parts."""
        return self.moved(lambda value: value / count)

    def moved(self, function: Callable[[float], float]) -> Estimate:
        """Return the estimate of what is a monotonic function of it."""
        value = function(self.value)
        if not self.has_interval:
            return Estimate(value=value, n=self.n)
        low, high = sorted(map(function, self.ends))
        return Estimate(value=value, low=low, high=high, n=self.n)
