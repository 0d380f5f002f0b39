"""Findings of a result beside earlier runs of the same scenario."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding(
    "{speedup:times} is outside the range of {runs} earlier runs here ({low:times} to "
    "{high:times}): measure again, and look for what changed on this machine",
    doubt=True,
    short="outside of earlier runs",
)
def outside_earlier_runs(*, speedup: float | None, runs: int, low: float, high: float) -> None: ...
