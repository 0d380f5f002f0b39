"""Comparisons beside those of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gpulab.core.estimate import value_of
from gpulab.core.findings import Finding
from gpulab.features.history.events import EarlierRuns
from gpulab.features.history.findings import outside_earlier_runs
from gpulab.report.feature import Draft, Feature
from gpulab.stats.comparison import Comparison, earlier_of


def _add_earlier(draft: Draft, comparison: Comparison) -> Comparison:
    """With the speedups of earlier runs."""
    earlier = draft.state.last(EarlierRuns)
    if earlier is None:
        return comparison
    speedup = comparison.speedup
    interval = speedup.ends if speedup and speedup.has_interval else None
    for past in earlier.comparisons:
        if (past.variant, past.against) == (comparison.variant, comparison.against):
            return replace(comparison, earlier=earlier_of(past.speedups, interval))
    return comparison


def _outside_of_earlier(draft: Draft) -> Iterator[Finding]:
    """Results outside the range of earlier runs."""
    for comparison in draft.comparisons:
        earlier = comparison.earlier
        if earlier is not None and earlier.outside:
            yield outside_earlier_runs(
                comparison.variant,
                speedup=value_of(comparison.speedup),
                runs=earlier.runs,
                low=earlier.low,
                high=earlier.high,
            )


FEATURE = Feature("history", add_to_comparison=_add_earlier, findings=_outside_of_earlier)
