"""Whether variants influence each other: each built alone, against the rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import exp, inf, log

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import Event, Examined, FindingMade, RunInvalid
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure
from gpulab.core.statuses import Cache, CheckKind, Clock, Status, Verdict
from gpulab.features.alone.events import AloneRun
from gpulab.features.alone.findings import (
    baseline_changed,
    baseline_slowed,
    differs_alone,
    power_cap_alone,
    speedup_differs_alone,
    variants_influence,
)
from gpulab.report.feature import Draft, Feature
from gpulab.report.findings import sustained_contradicts
from gpulab.report.report import VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import Keep, RunState, VariantState
from gpulab.stats.comparison import (
    INFLUENCED,
    SLOWED,
    Comparison,
    Sustained,
    differ,
    inner_interval,
    of_another_process,
    outermost_interval,
    ratio_of,
)
from gpulab.stats.series import Pair
from gpulab.stats.statistics import Interval, median


def _derived(draft: Draft) -> Iterator[Event]:
    """Yield what times alone say: what differs by more than a cache or a clock is invalid."""
    state = draft.state
    if not isinstance(state.timed_job, Measure) or state.baseline is None:
        return
    yield from _slower_baseline(state, draft.samples)
    for variant in state.variants.values():
        if examined := _examined(state, variant, draft.samples):
            yield examined


def alone_ratios(
    variants: Mapping[str, VariantState], pair: Pair, *, first: bool = False
) -> list[float]:
    """log(t_variant / t_against) per item by process; `first`: the variant was built first."""
    if not set(pair) <= variants.keys():
        return []
    after, before = (variants[name] for name in pair)
    before_s = {run.process: run.time_s / before.items for run in before.all(AloneRun)}
    return [
        log(run.time_s / after.items / before_s[run.process])
        for run in after.all(AloneRun)
        if run.process in before_s and (run.first or not first)
    ]


def _slower_baseline(state: RunState, samples: SampleView) -> Iterator[Event]:
    """That its steps are slower once others were built: the run is invalid where a build is known
    that did it; else it is said, and nobody accused.
    """
    assert state.baseline is not None
    firsts = [run for run in state.baseline.all(AloneRun) if run.first]
    times = [(run.time_s, run.later_s) for run in firsts if run.later_s]
    slower = inner_interval([log(later_s / before_s) for before_s, later_s in times])
    if slower is None or slower.low <= 0:
        return
    before_s, later_s = (median(seconds) for seconds in zip(*times, strict=True))
    values = {"before_s": before_s, "later_s": later_s, "ratio": exp(slower.median)}
    is_large = slower.low > log(SLOWED)
    culprit = _culprit(firsts) if is_large else None
    if culprit is not None:
        yield RunInvalid(reason=baseline_slowed(by=culprit, **values))
    elif is_large or slower.median > _half_width(state, samples):
        yield FindingMade(finding=baseline_changed(**values), explains=not is_large)


_FEWEST_AFTER = 3
"""Processes in which the baseline was timed after each build: all that have it first but one."""


def _culprit(firsts: Sequence[AloneRun]) -> str | None:
    """The variant after whose build, and first steps, the baseline was slower: in three of four
    processes at least.
    """
    changes: defaultdict[str, list[float]] = defaultdict(list)
    for run in firsts:
        before_s = run.time_s
        for name, time_s in run.after.items():
            changes[name].append(log(time_s / before_s))
            before_s = time_s
    for name, ratios in changes.items():
        lowest = sorted(ratios)[len(ratios) // 4]
        if len(ratios) >= _FEWEST_AFTER and lowest > log(SLOWED) / 2:
            return name
    return None


def _half_width(state: RunState, samples: SampleView) -> float:
    """Return the half width of the narrowest interval of a comparison with the baseline."""
    pairs = [(name, variant.info.against) for name, variant in state.variants.items()]
    intervals = [samples.interval((name, against)) for name, against in pairs if against]
    return min((theta.half_width for theta in intervals if theta), default=inf)


def _examined(state: RunState, variant: VariantState, samples: SampleView) -> Examined | None:
    name, against = variant.name, variant.info.against
    if against is None or against not in state.variants:
        return None
    ratios = alone_ratios(state.variants, (name, against), first=True)
    rounds = samples.interval((name, against))
    known = variant.last(Examined, CheckKind.ALONE)
    if not ratios or rounds is None or (known and not known.ok):
        return None
    reason = None
    uses_others = False
    if _differs(ratios, rounds):
        values = {"interleaved": exp(-rounds.median), "alone": exp(-median(ratios))}
        reason = speedup_differs_alone(name, **values)
        alone_s = median([run.time_s for run in variant.all(AloneRun) if run.first])
        rounds_s = (samples.rough(name) or alone_s) * variant.items
        apart = median(ratios) - rounds.median
        uses_others = apart > 0 and log(alone_s / rounds_s) > _LEAST_EXPLAINED * apart
        if uses_others:
            reason = variants_influence(name, **values, alone_s=alone_s, rounds_s=rounds_s)
    return Examined(
        variant=name,
        check=CheckKind.ALONE,
        ok=not uses_others,
        count=len(ratios),
        values={"alone": exp(-median(ratios)), "interleaved": exp(-rounds.median)},
        reason=reason,
    )


_LEAST_EXPLAINED = 0.5
"""The part of the difference between both speedups that a variant's own time has to explain: what
is faster among the others uses what they leave. Else the baseline, or others, made the difference.
"""


def _differs(ratios: list[float], rounds: Interval) -> bool:
    alone = inner_interval(ratios)
    if alone is None or abs(alone.median - rounds.median) <= log(INFLUENCED):
        return False
    return alone.low > rounds.high or alone.high < rounds.low


_POWER_CAP = "P"
"""Its letter among those of the clocks of a solo run."""


def _add_sustained(draft: Draft, comparison: Comparison) -> Comparison:
    """With its sustained speedup; a verdict that this contradicts becomes inconclusive."""
    state, samples, job = draft.state, draft.samples, draft.state.timed_job
    # By the device's clock they are not what a user waits for, and of a cold one most is flushing.
    if job is None or job.clock != Clock.WALL or job.cache != Cache.HOT:
        return comparison
    after = draft.variant(comparison.variant)
    before = draft.variant(comparison.against)
    if comparison.speedup is None or after is None or before is None:
        return comparison
    if after.status not in (Status.OK, Status.PENDING):
        return comparison
    pair = comparison.variant, comparison.against
    capped = _POWER_CAP in "".join(
        variant.solo_run.clocks for variant in (before, after) if variant.solo_run
    )
    ratio = _process_ratio(state, pair)
    solo = _solo_ratio(after, before)
    if ratio is None or (capped and solo is not None):
        ratio = _widened(ratio, solo)
    if ratio is None:
        return comparison
    speedup = ratio.estimate
    has_width = ratio.low < ratio.high
    if not has_width:
        speedup = Estimate(value=ratio.median, n=ratio.n)
    headline_reason = None
    if has_width or capped:
        headline_reason = _headline_reason(comparison, ratio, samples, capped=capped)
    sustained = Sustained(
        speedup=speedup,
        items_per_s=_items_per_s(state, after, capped=capped),
        headline_reason=headline_reason,
    )
    reason = _contradicts(comparison, sustained)
    if reason is None:
        return replace(comparison, sustained=sustained)
    return replace(comparison, sustained=sustained, verdict=Verdict.INCONCLUSIVE, reason=reason)


def _process_ratio(state: RunState, pair: Pair) -> Interval | None:
    """From processes in which both were alone; of too few an interval of no width."""
    speedups = [exp(-theta) for theta in alone_ratios(state.variants, pair)]
    if not speedups:
        return None
    middle = median(speedups)
    return outermost_interval(speedups) or Interval(middle, middle, middle, len(speedups))


def _solo_ratio(after: VariantReport, before: VariantReport) -> Interval | None:
    """From a solo run of each in one process."""
    if after.solo_run is None or before.solo_run is None:
        return None
    ratio = ratio_of(_item_time(before), _item_time(after))
    known = after.solo_run.time_s.has_interval and before.solo_run.time_s.has_interval
    return ratio if known else Interval(ratio.median, ratio.median, ratio.median, ratio.n)


def _widened(processes: Interval | None, solo: Interval | None) -> Interval | None:
    """The ratio of solo runs, long enough for the power cap, as wide as that of processes."""
    if solo is None or processes is None:
        return solo
    moved = solo.median / processes.median
    return Interval(solo.median, processes.low * moved, processes.high * moved, processes.n)


def _items_per_s(state: RunState, variant: VariantReport, *, capped: bool) -> float | None:
    alone = state.variants[variant.name].all(AloneRun)
    if alone and not capped:
        return (variant.items or 1.0) / median([run.time_s for run in alone])
    return variant.solo_run.items_per_s if variant.solo_run else None


def _item_time(variant: VariantReport) -> Interval:
    """Seconds per item of a solo run."""
    solo = variant.solo_run
    items = variant.items or 1.0
    assert solo is not None
    low, high = solo.time_s.ends
    return Interval(solo.time_s.value / items, low / items, high / items, 0)


def _headline_reason(
    comparison: Comparison, ratio: Interval, samples: SampleView, *, capped: bool
) -> Finding | None:
    """Why the sustained speedup is what a user gets, where it is not the interleaved one."""
    interleaved = comparison.speedup
    if capped and interleaved is not None and interleaved.has_interval:
        low, high = interleaved.ends
        if not low <= ratio.median <= high:
            return power_cap_alone(comparison.variant)
    speedups = [exp(-theta) for theta in samples.units((comparison.variant, comparison.against))]
    if differ(ratio, of_another_process(speedups)):
        return differs_alone(comparison.variant)
    return None


def _contradicts(comparison: Comparison, sustained: Sustained) -> Finding | None:
    """The sustained interval lies on the other side of 1x than the verdict says."""
    interleaved = comparison.speedup
    if interleaved is None or not sustained.speedup.has_interval:
        return None
    low, high = sustained.speedup.ends
    slower_alone = comparison.verdict == Verdict.FASTER and high < 1
    faster_alone = comparison.verdict == Verdict.SLOWER and low > 1
    if not slower_alone and not faster_alone:
        return None
    values = {"interleaved": interleaved.value, "sustained": sustained.speedup.value}
    return sustained_contradicts(comparison.variant, **values)


FEATURE = Feature(
    "alone", keeps={AloneRun: Keep(1000)}, derive_events=_derived, add_to_comparison=_add_sustained
)
