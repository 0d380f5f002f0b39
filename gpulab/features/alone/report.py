"""Whether variants influence each other: each built alone, against the rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from math import exp, log

from msgspec.structs import replace

from gpulab.core.events import Examined
from gpulab.core.finding import Finding, Value, finding
from gpulab.core.jobs import Measure
from gpulab.core.statuses import Cache, CheckKind, Clock, Status, Verdict
from gpulab.report.report import VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState, VariantState
from gpulab.stats.comparison import (
    FEWEST_FIRST,
    INFLUENCED,
    SLOWED,
    Comparison,
    Sustained,
    alone_interval,
    differ,
    of_another_process,
    ratio_of,
)
from gpulab.stats.series import Pair
from gpulab.stats.statistics import Interval, median


def with_influence(state: RunState, samples: SampleView) -> RunState:
    """The state, with variants invalid whose times alone differ too much from the rounds."""
    job = state.timed_job
    if not isinstance(job, Measure) or not state.variants:
        return state
    slowed = _baseline_slowed(next(iter(state.variants.values())))
    judged = {name: _judged(state, variant, samples) for name, variant in state.variants.items()}
    return dataclasses.replace(state, variants=judged, invalid=[*state.invalid, *slowed])


def alone_ratios(
    variants: Mapping[str, VariantState], pair: Pair, *, first: bool = False
) -> list[float]:
    """log(t_variant / t_against) per item by process; `first`: the variant was built first."""
    if not set(pair) <= variants.keys():
        return []
    after, before = (variants[name] for name in pair)
    before_s = {run.process: run.time_s / before.items for run in before.alone}
    return [
        log(run.time_s / after.items / before_s[run.process])
        for run in after.alone
        if run.process in before_s and (run.first or not first)
    ]


def _baseline_slowed(baseline: VariantState) -> list[Finding]:
    """Its steps before others were built, against those after the rounds of the same process."""
    times = [(run.time_s, run.later_s) for run in baseline.alone if run.first and run.later_s]
    slower = alone_interval([log(later_s / before_s) for before_s, later_s in times], FEWEST_FIRST)
    if slower is None or slower.low <= log(SLOWED):
        return []
    before_s, later_s = (median(seconds) for seconds in zip(*times, strict=True))
    return [
        finding("baseline_slowed", before_s=before_s, later_s=later_s, ratio=exp(slower.median))
    ]


def _judged(state: RunState, variant: VariantState, samples: SampleView) -> VariantState:
    against = variant.info.against
    if against is None or against not in state.variants:
        return variant
    pair = variant.info.name, against
    ratios = alone_ratios(state.variants, pair, first=True)
    alone, rounds = alone_interval(ratios, 1), samples.interval(pair)
    if alone is None or rounds is None:
        return variant
    reason = _differs(variant.info.name, alone, rounds)
    values: dict[str, Value] = {"alone": exp(-alone.median), "interleaved": exp(-rounds.median)}
    examined = Examined(
        variant=variant.info.name,
        check=CheckKind.ALONE,
        ok=reason is None,
        count=len(ratios),
        values=values,
        reason=reason,
    )
    known = variant.examined.get(CheckKind.ALONE)
    if known is not None and not known.ok:
        return variant
    judged = dataclasses.replace(variant, examined={**variant.examined, CheckKind.ALONE: examined})
    if reason is None or variant.status not in (Status.PENDING, Status.OK):
        return judged
    return dataclasses.replace(judged, status=Status.INVALID, reason=reason)


def _differs(name: str, alone: Interval, rounds: Interval) -> Finding | None:
    apart = alone.low > rounds.high or alone.high < rounds.low
    if alone.n < FEWEST_FIRST or not apart or abs(alone.median - rounds.median) <= log(INFLUENCED):
        return None
    return finding(
        "variants_influence", name, interleaved=exp(-rounds.median), alone=exp(-alone.median)
    )


_POWER_CAP = "P"
"""Its letter among those of the clocks of a solo run."""


def with_sustained(
    state: RunState,
    samples: SampleView,
    comparisons: Sequence[Comparison],
    variants: Sequence[VariantReport],
) -> list[Comparison]:
    """Comparisons with sustained speedups; a contradicted verdict becomes inconclusive."""
    job = state.timed_job
    # By the device's clock they are not what a user waits for, and of a cold one most is flushing.
    if job is None or job.clock != Clock.WALL or job.cache != Cache.HOT:
        return list(comparisons)
    reports = {variant.name: variant for variant in variants}
    return [_with_sustained(state, samples, comparison, reports) for comparison in comparisons]


def _with_sustained(
    state: RunState,
    samples: SampleView,
    comparison: Comparison,
    reports: Mapping[str, VariantReport],
) -> Comparison:
    after, before = reports.get(comparison.variant), reports.get(comparison.against)
    if comparison.speedup is None or after is None or before is None:
        return comparison
    if after.status not in (Status.OK, Status.PENDING):
        return comparison
    pair = comparison.variant, comparison.against
    capped = _POWER_CAP in "".join(
        variant.solo_run.clocks for variant in (before, after) if variant.solo_run
    )
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
        headline_reason=_headline_reason(comparison, ratio, samples, capped=capped)
        if ratio.low < ratio.high or capped
        else None,
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
    """From a solo run of each in one process."""
    if after.solo_run is None or before.solo_run is None:
        return None
    ratio = ratio_of(_per_item(before), _per_item(after))
    known = None not in (after.solo_run.low_s, before.solo_run.low_s)
    return ratio if known else Interval(ratio.median, ratio.median, ratio.median, ratio.n)


def _as_unsure_as(processes: Interval | None, solo: Interval | None) -> Interval | None:
    """The ratio of solo runs, long enough for the power cap, as wide as that of processes."""
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


def _headline_reason(
    comparison: Comparison, ratio: Interval, samples: SampleView, *, capped: bool
) -> Finding | None:
    """Why the sustained speedup is what a user gets, where it is not the interleaved one."""
    low, high = comparison.low, comparison.high
    if capped and low is not None and high is not None and not low <= ratio.median <= high:
        return finding("power_cap_alone", comparison.variant)
    speedups = [exp(-theta) for theta in samples.units((comparison.variant, comparison.against))]
    return (
        finding("differs_alone", comparison.variant)
        if differ(ratio, of_another_process(speedups))
        else None
    )


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
