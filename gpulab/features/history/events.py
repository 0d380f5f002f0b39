"""What earlier runs of the same file gave."""

from __future__ import annotations

import msgspec

from gpulab.core.events import Event
from gpulab.core.values import Name, PositiveAmount


class PastSpeedups(msgspec.Struct, frozen=True, kw_only=True):
    """The speedups of earlier runs for one comparison, the oldest first."""

    variant: Name
    against: Name
    speedups: list[PositiveAmount]


class EarlierRuns(Event, frozen=True):
    """Said by the session: runs on this machine of the same file with the same parameters, device
    and versions.
    """

    comparisons: tuple[PastSpeedups, ...]
