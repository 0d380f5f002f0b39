"""Whether variants influence each other: each alone, where no other had been built, against the rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import exp, log

from gpulab.analysis.series import Pair
from gpulab.analysis.statistics import Interval, median
from gpulab.analysis.sustained import FEWEST_FIRST, INFLUENCED, SLOWED, alone_interval
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


def alone_ratios(variants: Mapping[str, VariantState], pair: Pair, *, first: bool = False) -> list[float]:
    """log(t_variant / t_against) per item of each process in which both ran alone; `first`: the variant before it."""
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
    return [finding("baseline_slowed", before_s=before_s, later_s=later_s, ratio=exp(slower.median))]


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
    judged = replace(variant, examined={**variant.examined, CheckKind.ALONE: examined})
    if reason is None or variant.status not in (Status.PENDING, Status.OK):
        return judged
    return replace(judged, status=Status.INVALID, reason=reason)


def _differs(name: str, alone: Interval, rounds: Interval) -> Finding | None:
    apart = alone.low > rounds.high or alone.high < rounds.low
    if alone.n < FEWEST_FIRST or not apart or abs(alone.median - rounds.median) <= log(INFLUENCED):
        return None
    return finding("variants_influence", name, interleaved=exp(-rounds.median), alone=exp(-alone.median))
