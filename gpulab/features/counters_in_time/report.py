"""Counters over the steps of a variant, as parts of the report."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.features.counters_in_time.events import CountersEnded, CountersSampled
from gpulab.features.counters_in_time.result import RunPart, VariantPart
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import VariantState


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    event = variant.last(CountersSampled)
    if event is None:
        return report
    sampled, job = event.sampled, draft.state.timed_job
    if sampled.moved_bytes is not None and report.bytes and job and not job.declares_bytes_of_link:
        sampled = replace(sampled, over_declared=sampled.moved_bytes / report.bytes)
    return report.with_parts(counters_in_time=sampled)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    event = draft.state.last(CountersEnded)
    return report.with_parts(counters_in_time=event.sampling) if event else report


FEATURE = Feature(
    "counters_in_time",
    variant_part=VariantPart,
    run_part=RunPart,
    add_to_variant=_add_to_variant,
    add_to_run=_add_to_run,
    views=[View("counters_in_time.view:counters", Section.COUNTERS, flag="counters")],
)
