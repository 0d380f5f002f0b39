"""Counters over the steps of a variant, as parts of the report."""

from __future__ import annotations

from itertools import chain
from math import expm1

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.jobs import TimedJob
from gpulab.features.counters_in_time import result
from gpulab.features.counters_in_time.events import CountersEnded, CountersSampled
from gpulab.features.counters_in_time.result import CountersReport, SampledSteps
from gpulab.features.counters_in_time.rows import DRAM
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import RunState, VariantState
from gpulab.stats.statistics import log_ratios, median_estimate


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    event = variant.last(CountersSampled)
    if event is None:
        return report
    job = draft.state.job
    over_declared = None
    if report.bytes and isinstance(job, TimedJob) and not job.declares_bytes_of_link:
        moved = [event.per_step[name] for name in DRAM if name in event.per_step]
        over_declared = sum(moved) / report.bytes if len(moved) == len(DRAM) else None
    sampled = SampledSteps(
        interval_s=event.interval_s,
        steps=event.steps,
        step_s=event.step_s,
        shown_s=event.shown_s,
        rows=event.rows,
        per_step=event.per_step,
        over_declared=over_declared,
    )
    return report.with_parts(counters_in_time=sampled)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    ended = draft.state.last(CountersEnded)
    if ended is None:
        return report
    ceilings = report.ceilings.ceilings if report.get("ceilings") else ()
    roofs = [each.median for each in ceilings if each.roof == "memory" and each.steady]
    counters = CountersReport(
        package=ended.package,
        ratios=ended.ratios,
        cost=_cost(draft.state),
        memory_bytes_per_s=max(roofs, default=None),
        findings=ended.findings,
    )
    return report.with_parts(counters_in_time=counters)


def _cost(state: RunState) -> Estimate | None:
    """What sampling adds to a step, from the pairs of all variants."""
    events = [variant.last(CountersSampled) for variant in state.variants.values()]
    pairs = [log_ratios(event.on_s, event.off_s) for event in events if event]
    ratio = median_estimate([*chain.from_iterable(pairs)])
    if ratio is None:
        return None
    ends = {name: getattr(ratio, name) for name in ("value", "low", "high")}
    shares = {name: None if end is None else expm1(end) for name, end in ends.items()}
    return replace(ratio, **shares)


FEATURE = Feature(
    "counters_in_time",
    variant_part=result.VariantPart,
    run_part=result.RunPart,
    add_to_variant=_add_to_variant,
    add_to_run=_add_to_run,
    views=[View("counters_in_time.view:counters", Section.RESOURCES, flag="counters")],
)
