"""Findings of a result beside earlier runs of the same scenario, and of what is kept of them."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.units import times


@finding(doubt=True, short="outside of earlier runs")
def outside_earlier_runs(*, speedup: float | None, runs: int, low: float, high: float) -> str:
    return (
        f"{times(speedup)} is outside the range of {runs} earlier runs here "
        f"({times(low)} to {times(high)}): measure again, and look for what changed on this "
        "machine"
    )


@finding(rank=Rank.EXPLAINING)
def store_set_aside(*, file: str) -> str:
    return (
        f"the store was damaged, and is now {file}: earlier runs are read from their files again, "
        "ceilings and choices are measured again"
    )
