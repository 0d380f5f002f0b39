"""How often a screen that only watches is drawn: as often as a small share of a core pays for."""

from __future__ import annotations

from time import monotonic, process_time

_LONGEST_S = 2.0


class Budget:
    """Limits the CPU time of this process."""

    def __init__(self, share: float) -> None:
        """`share`: of a core; 1 for as often as one asks."""
        self._share = share
        self._due = 0.0
        self._spent: float | None = None

    def hurry(self) -> None:
        """It is due at once: somebody pressed a key."""
        self._due = 0.0

    def allows(self) -> bool:
        """Return whether what it pays for is due again."""
        now, spent = monotonic(), process_time()
        if now < self._due:
            return False
        if self._spent is not None:
            self._due = now + min(_LONGEST_S, (spent - self._spent) / self._share)
        self._spent = spent
        return True
