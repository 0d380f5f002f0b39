"""What each comparison is of variants that ran alone, and where that is the truth for who runs one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from statistics import median

from msgspec.structs import replace

from gpulab.analysis.comparison import Comparison
from gpulab.analysis.series import Pair
from gpulab.analysis.statistics import Interval
from gpulab.analysis.sustained import Sustained, alone_interval, differ, of_another_process, ratio_of
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import Cache, Clock, Status, Verdict
from gpulab.report.alone.influence import alone_ratios
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
    # By the device's clock they are not what a user waits for, and of a cold one most is flushing.
    if job is None or job.clock != Clock.WALL or job.cache != Cache.HOT:
        return list(comparisons)
    reports = {variant.name: variant for variant in variants}
    return [_with_sustained(state, samples, comparison, reports) for comparison in comparisons]


def _with_sustained(
    state: RunState, samples: SampleView, comparison: Comparison, reports: Mapping[str, VariantReport]
) -> Comparison:
    after, before = reports.get(comparison.variant), reports.get(comparison.against)
    if comparison.speedup is None or after is None or before is None:
        return comparison
    if after.status not in (Status.OK, Status.PENDING):
        return comparison
    pair = comparison.variant, comparison.against
    capped = _POWER_CAP in "".join(variant.solo_run.clocks for variant in (before, after) if variant.solo_run)
    ratio, solo = _of_processes(state, pair), _of_solo_runs(after, before)
    if ratio is None or (capped and solo is not None):
        ratio = _as_unsure_as(ratio, solo)
    if ratio is None:
        return comparison
    sustained = Sustained(
        speedup=ratio.median,
        low=ratio.low if ratio.low < ratio.high else None,
        high=ratio.high if ratio.low < ratio.high else None,
        processes=ratio.n,
        items_per_s=_items_per_s(state, after, capped=capped),
        heads=_heads(comparison, ratio, samples, capped=capped) if ratio.low < ratio.high or capped else None,
    )
    reason = _contradicts(comparison, sustained)
    if reason is None:
        return replace(comparison, sustained=sustained)
    return replace(comparison, sustained=sustained, verdict=Verdict.INCONCLUSIVE, reason=reason)


def _of_processes(state: RunState, pair: Pair) -> Interval | None:
    """From processes in which both were alone; of too few an interval of no width."""
    speedups = [exp(-theta) for theta in alone_ratios(state.variants, pair)]
    if not speedups:
        return None
    middle = median(speedups)
    return alone_interval(speedups) or Interval(middle, middle, middle, len(speedups))


def _of_solo_runs(after: VariantReport, before: VariantReport) -> Interval | None:
    """From a run of each by itself in one process: of short runs, and in files from before there were others."""
    if after.solo_run is None or before.solo_run is None:
        return None
    ratio = ratio_of(_per_item(before), _per_item(after))
    known = None not in (after.solo_run.low_s, before.solo_run.low_s)
    return ratio if known else Interval(ratio.median, ratio.median, ratio.median, ratio.n)


def _as_unsure_as(processes: Interval | None, solo: Interval | None) -> Interval | None:
    """The ratio of solo runs, which alone are long enough to reach the power cap; the width is that of processes."""
    if solo is None or processes is None:
        return solo
    moved = solo.median / processes.median
    return Interval(solo.median, processes.low * moved, processes.high * moved, processes.n)


def _items_per_s(state: RunState, variant: VariantReport, *, capped: bool) -> float | None:
    alone = state.variants[variant.name].alone
    if alone and not capped:
        return (variant.items or 1.0) / median([run.time_s for run in alone])
    return variant.solo_run.items_per_s if variant.solo_run else None


def _per_item(variant: VariantReport) -> Interval:
    """Seconds per item of a solo run."""
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
