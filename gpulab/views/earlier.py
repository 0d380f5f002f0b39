"""Earlier runs of the same on this machine, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.analysis.comparison import Comparison
from gpulab.views.text import plural, span, times


def earlier_runs(comparisons: Sequence[Comparison]) -> str | None:
    """Such as: 6 earlier runs here: bmm 1.52 to 1.69. None where there are none."""
    placed = [(comparison, comparison.earlier) for comparison in comparisons if comparison.earlier is not None]
    if not placed:
        return None
    alike = len({earlier.runs for _, earlier in placed}) == 1
    parts = []
    for comparison, earlier in placed:
        speedups = times(earlier.low) if earlier.runs == 1 else span(earlier.low, earlier.high)
        parts.append(f"{comparison.variant} {speedups}{'' if alike else f' ({earlier.runs})'}")
    head = plural(placed[0][1].runs, "earlier run") if alike else "earlier runs"
    return f"{head} here: {', '.join(parts)}"
