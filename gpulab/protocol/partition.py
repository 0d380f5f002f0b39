"""Where the time of a recorded window went, and the names of phases that mean something to the lab."""

from __future__ import annotations

import msgspec

from gpulab.protocol.values import Amount, Name, Number, Seconds

USEFUL, DATA, COPY, SYNC = "useful", "data", "copy", "sync"
"""Phases with a meaning; any other is its author's own."""
UNMARKED = ""
"""The time outside every phase."""
WAITING = frozenset({DATA, COPY, SYNC})
CATEGORIES = (
    USEFUL,
    "other busy",
    "communication",
    "copies",
    "alloc",
    "data wait",
    "sync",
    "launch-bound",
    "other",
    "preempted",
)
"""Every instant belongs to the first of these that it fits."""
BUSY = (USEFUL, "other busy", "communication", "copies")
"""What a device does: as long under the profiler as without it."""
_ROUNDING, _ROUNDING_S = 1 + 1e-6, 1e-6


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of a window by category, in the order of `CATEGORIES`.

    A window of a device has no "preempted"; one of a CPU has no "communication" and no "launch-bound".
    `marked` says whether the step marks what is useful; where it does not, all its work counts as useful.
    `copied_s` is the union of a device's copies from and to the host, whatever ran meanwhile. ValueError where the
    categories are others, or a part is larger than the window.
    """

    window_s: Seconds
    seconds: dict[Name, Number]
    marked: bool
    on_device: bool
    copied_s: Seconds = 0.0
    around: dict[Name, Amount] = {}
    within: dict[Name, Amount] = {}
    """Of a CPU, the share of the recorded operations that begin just after an instant of each category, and just before
    one: where the time that recording them takes falls, as far as it is outside of them, and inside.
    """

    def __post_init__(self) -> None:
        if USEFUL not in self.seconds or not {*self.seconds, *self.around, *self.within} <= set(CATEGORIES):
            raise ValueError("a partition by other categories")
        most_s = self.window_s * _ROUNDING + _ROUNDING_S
        if not all(-_ROUNDING_S <= part_s <= most_s for part_s in self.seconds.values()):
            raise ValueError("a part that is larger than the whole")

    @property
    def shares(self) -> dict[str, float]:
        """Fractions of the window, which sum to 1; zeros where the window is empty."""
        window_s = self.window_s
        return {category: part_s / window_s if window_s else 0.0 for category, part_s in self.seconds.items()}

    @property
    def goodput(self) -> float:
        """Useful seconds / seconds of the window."""
        return self.shares[USEFUL]
