"""Findings of a result beside earlier runs of the same scenario, and of what is kept of them."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding


@finding(
    "{speedup:times} is outside the range of {runs} earlier runs here ({low:times} to "
    "{high:times}): measure again, and look for what changed on this machine",
    doubt=True,
    short="outside of earlier runs",
)
def outside_earlier_runs(*, speedup: float | None, runs: int, low: float, high: float) -> None: ...
@finding(
    "the store was damaged, and is now {file}: earlier runs are read from their files again, "
    "ceilings and choices are measured again",
    rank=Rank.EXPLAINING,
)
def store_set_aside(*, file: str) -> None: ...


@finding(
    "the store is not used: {why}; earlier runs, ceilings and choices of gpulab.tune are not "
    "reused",
    rank=Rank.EXPLAINING,
)
def store_unused(*, why: str) -> None: ...
