"""Comparisons beside those of earlier runs on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpulab.analysis.comparison import Comparison
from gpulab.analysis.earlier import earlier_of
from gpulab.protocol.events import EarlierRuns
from gpulab.protocol.finding import Finding, finding


def with_earlier(comparisons: Sequence[Comparison], earlier: EarlierRuns | None) -> list[Comparison]:
    """The comparisons, each with what earlier runs gave."""
    if earlier is None:
        return list(comparisons)
    speedups = {(past.variant, past.against): past.speedups for past in earlier.comparisons}
    placed = []
    for comparison in comparisons:
        low, high = comparison.low, comparison.high
        interval = None if low is None or high is None else (low, high)
        past = speedups.get((comparison.variant, comparison.against), [])
        placed.append(replace(comparison, earlier=earlier_of(past, interval)))
    return placed


def outside_of_earlier(comparisons: Sequence[Comparison]) -> list[Finding]:
    """Results that earlier runs do not bear out."""
    return [
        finding(
            "outside_earlier_runs",
            comparison.variant,
            speedup=comparison.speedup,
            runs=comparison.earlier.runs,
            low=comparison.earlier.low,
            high=comparison.earlier.high,
        )
        for comparison in comparisons
        if comparison.earlier is not None and comparison.earlier.outside
    ]
