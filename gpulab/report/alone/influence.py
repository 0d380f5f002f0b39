"""Whether variants influence each other: each alone, in processes where no other was built, against the rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import exp, log

from gpulab.analysis.series import Pair
from gpulab.analysis.statistics import FEWEST, Interval, median, median_interval
from gpulab.analysis.sustained import INFLUENCED, SLOWED, alone_interval
from gpulab.protocol.events import Examined
from gpulab.protocol.finding import Finding, Value, finding
from gpulab.protocol.jobs import Measure
from gpulab.protocol.statuses import CheckKind, Status
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.report.variant_state import VariantState


def with_influence(state: RunState, samples: SampleView) -> RunState:
    """The state, with what the variants' times alone say; what differs by more than a cache or a clock is invalid."""
    job = state.timed_job
    if not isinstance(job, Measure) or not state.variants:
        return state
    slowed = _baseline_slowed(next(iter(state.variants.values())))
    judged = {name: _judged(state, variant, samples) for name, variant in state.variants.items()}
    return replace(state, variants=judged, invalid=[*state.invalid, *slowed])


def alone_ratios(variants: Mapping[str, VariantState], pair: Pair) -> list[float]:
    """log(t_variant / t_against) per item of each process beside which both ran alone."""
    times = [
        {run.process: run.time_s / variants[name].items for run in variants[name].alone}
        for name in pair
        if name in variants
    ]
    if len(times) < len(pair):
        return []
    after, before = times
    return [log(after[process] / before[process]) for process in after if process in before]


def _baseline_slowed(baseline: VariantState) -> list[Finding]:
    """Its steps before others were built, against those after the rounds of the same process."""
    runs = [run for run in baseline.alone if run.later_s]
    slower = median_interval([log((run.later_s or 0.0) / run.time_s) for run in runs])
    if slower is None or len(runs) < FEWEST or slower.low <= log(SLOWED):
        return []
    before_s = median([run.time_s for run in runs])
    later_s = median([run.later_s for run in runs if run.later_s])
    return [finding("baseline_slowed", before_s=before_s, later_s=later_s, ratio=exp(slower.median))]


def _judged(state: RunState, variant: VariantState, samples: SampleView) -> VariantState:
    against = variant.info.against
    if against is None or against not in state.variants:
        return variant
    pair = variant.info.name, against
    ratios = alone_ratios(state.variants, pair)
    alone, rounds = alone_interval(ratios), samples.interval(pair)
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
    judged = replace(variant, examined={**variant.examined, CheckKind.ALONE: examined})
    if reason is None or variant.status not in (Status.PENDING, Status.OK):
        return judged
    return replace(judged, status=Status.INVALID, reason=reason)


def _differs(name: str, alone: Interval, rounds: Interval) -> Finding | None:
    apart = alone.low > rounds.high or alone.high < rounds.low
    if not apart or abs(alone.median - rounds.median) <= log(INFLUENCED):
        return None
    return finding("variants_influence", name, interleaved=exp(-rounds.median), alone=exp(-alone.median))
