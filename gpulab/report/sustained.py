"""What each comparison is of variants that ran alone, and where that is the truth for who runs one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from msgspec.structs import replace

from gpulab.analysis.comparison import Comparison
from gpulab.analysis.statistics import Interval
from gpulab.analysis.sustained import Sustained, differ, of_another_process, ratio_of
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import Cache, Clock, Status, Verdict
from gpulab.report.report import VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState

_POWER_CAP = "P"
"""Its letter among those of the clocks of a solo run."""


def with_sustained(
    state: RunState, samples: SampleView, comparisons: Sequence[Comparison], variants: Sequence[VariantReport]
) -> list[Comparison]:
    """The comparisons, each with its sustained speedup; a verdict that it contradicts becomes inconclusive."""
    job = state.timed_job
    # A solo run is timed by the host's clock, and of a cold one most is flushing.
    if job is None or job.clock != Clock.WALL or job.cache != Cache.HOT:
        return list(comparisons)
    reports = {variant.name: variant for variant in variants}
    return [_with_sustained(samples, comparison, reports) for comparison in comparisons]


def _with_sustained(samples: SampleView, comparison: Comparison, reports: Mapping[str, VariantReport]) -> Comparison:
    after, before = reports.get(comparison.variant), reports.get(comparison.against)
    if comparison.speedup is None or after is None or before is None:
        return comparison
    if after.status not in (Status.OK, Status.PENDING) or after.solo_run is None or before.solo_run is None:
        return comparison
    ratio = ratio_of(_per_item(before), _per_item(after))
    known = None not in (after.solo_run.low_s, before.solo_run.low_s)
    capped = _POWER_CAP in after.solo_run.clocks + before.solo_run.clocks
    sustained = Sustained(
        speedup=ratio.median,
        low=ratio.low if known else None,
        high=ratio.high if known else None,
        heads=_heads(comparison, ratio, samples, capped=capped) if known or capped else None,
    )
    reason = _contradicts(comparison, sustained)
    if reason is None:
        return replace(comparison, sustained=sustained)
    return replace(comparison, sustained=sustained, verdict=Verdict.INCONCLUSIVE, reason=reason)


def _per_item(variant: VariantReport) -> Interval:
    """Seconds per item of a solo run; without the spread of its blocks an interval of no width."""
    solo, items = variant.solo_run, variant.items or 1.0
    assert solo is not None
    ends = [solo.time_s if end is None else end for end in (solo.low_s, solo.high_s)]
    return Interval(solo.time_s / items, ends[0] / items, ends[1] / items, 0)


def _heads(comparison: Comparison, ratio: Interval, samples: SampleView, *, capped: bool) -> Finding | None:
    """Why the sustained speedup is what a user gets, where it is not the interleaved one."""
    low, high = comparison.low, comparison.high
    if capped and low is not None and high is not None and not low <= ratio.median <= high:
        return finding("power_cap_alone", comparison.variant)
    speedups = [exp(-theta) for theta in samples.units((comparison.variant, comparison.against))]
    return finding("differs_alone", comparison.variant) if differ(ratio, of_another_process(speedups)) else None


def _contradicts(comparison: Comparison, sustained: Sustained) -> Finding | None:
    """The sustained interval lies on the other side of 1x than the verdict says."""
    if sustained.low is None or sustained.high is None:
        return None
    slower_alone = comparison.verdict == Verdict.FASTER and sustained.high < 1
    faster_alone = comparison.verdict == Verdict.SLOWER and sustained.low > 1
    if not slower_alone and not faster_alone:
        return None
    values = {"interleaved": comparison.speedup, "sustained": sustained.speedup}
    return finding("sustained_contradicts", comparison.variant, **values)
