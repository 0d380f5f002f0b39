"""Which variant is the best, where the evidence says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from gpulab.analysis.comparison import Comparison
from gpulab.analysis.statistics import Interval
from gpulab.analysis.student import for_comparisons
from gpulab.protocol.statuses import Status
from gpulab.report.report import VariantReport
from gpulab.report.samples import SampleView


def best_of(
    variants: Sequence[VariantReport], comparisons: Sequence[Comparison], samples: SampleView
) -> tuple[str | None, list[str]]:
    """(the best variant or None, those among which it is, the largest speedup first).

    The variant with the largest speedup over the baseline must be shown to beat each of the others, at a confidence
    that holds for all of these comparisons together.
    """
    ok = {variant.name for variant in variants if variant.status in (Status.OK, Status.PENDING)}
    speedups = {
        comparison.variant: comparison.speedup
        for comparison in comparisons
        if comparison.speedup and comparison.against == variants[0].name and comparison.variant in ok
    }
    ranked = sorted(speedups, key=lambda name: speedups[name], reverse=True)
    if len(ranked) < 2:
        return (ranked[0] if ranked else None), ranked
    first, *others = ranked
    thetas = {name: theta for name in ranked if (theta := samples.interval((name, variants[0].name)))}
    close = [name for name in others if not _beats(first, name, thetas, samples, len(others))]
    return (None if close else first), [first, *close]


def _beats(first: str, other: str, thetas: Mapping[str, Interval], samples: SampleView, comparisons: int) -> bool:
    """Whether `first` is shown to take less time than `other`: paired, or by intervals that do not overlap."""
    with suppress(KeyError):
        theta = samples.interval((first, other))
        return theta is not None and for_comparisons(theta, comparisons).high < 0
    with suppress(KeyError):
        theta = samples.interval((other, first))
        return theta is not None and for_comparisons(theta, comparisons).low > 0
    if first not in thetas or other not in thetas:
        return False
    both = [for_comparisons(thetas[name], 2 * comparisons) for name in (first, other)]
    return both[0].high < both[1].low
