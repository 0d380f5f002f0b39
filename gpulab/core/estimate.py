"""A value that was measured, with the interval in which the true one lies."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A median of `n` values with the ends of its interval; no ends where there are too few.

    `n` is None where the values were not counted.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the interval, low and high; the value where there is none."""
        if self.low is None or self.high is None:
            return self.value, self.value
        return self.low, self.high

    def over(self, count: float) -> Estimate:
        """Return the estimate of one of `count` parts."""
        low, high = (None if end is None else end / count for end in (self.low, self.high))
        return Estimate(value=self.value / count, low=low, high=high, n=self.n)
