"""What `gpulab.tune` found: every candidate, the one that was chosen, and what it cannot be told from."""

from __future__ import annotations

import msgspec

from gpulab.protocol.values import Amount, Count, Line, Name, Seconds, StepTime


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate. `ratio` is its time over that of the chosen one; with an interval where both were in the final."""

    config: Line
    """Such as `block=128 warps=4`."""
    time_s: StepTime | None = None
    """The median of its own blocks, per step; None where it could not be measured."""
    blocks: Count = 0
    ratio: Amount | None = None
    low: Amount | None = None
    high: Amount | None = None
    reason: Line | None = None
    """Why it was left out: it did not compile, does not fit, or computes something else."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates, the chosen one first, then the finalists, then those that were eliminated, then what failed."""

    tried: list[Tried]
    tied: Count = 0
    """How many of those after the first it cannot be told from."""
    rounds: Count = 0
    """Of the final."""
    seconds: Seconds = 0.0
    build_s: Seconds = 0.0
    """Of them for building, compiling and checking."""
    time_s: Seconds = 0.0
    """Of the rounds of the run that measured it: one that is given more measures again."""
    at: Name = ""
    """UTC, ISO 8601."""

    @property
    def finalists(self) -> list[Tried]:
        """Those with an interval, and the chosen one before them."""
        return [self.tried[0], *(tried for tried in self.tried[1:] if tried.low is not None)]

    @property
    def second(self) -> Tried | None:
        """The fastest of the other finalists: what its ratio is above 1 is the regret of taking it."""
        return min(self.finalists[1:], key=lambda tried: tried.ratio or 0.0, default=None)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A tuning, for whoever asks again: `key` is a digest of the device, versions, source, parameters, candidates."""

    key: Name
    tuning: Tuning
