"""Counters over the steps of a variant, as parts of the report."""

from __future__ import annotations

from gpulab.features.counters_in_time import result
from gpulab.features.counters_in_time.events import CountersEnded, CountersSampled
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import VariantState


def _add_to_variant(_: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    event = variant.last(CountersSampled)
    return report.with_parts(counters_in_time=event.sampled) if event else report


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    event = draft.state.last(CountersEnded)
    return report.with_parts(counters_in_time=event.sampling) if event else report


FEATURE = Feature(
    "counters_in_time",
    variant_part=result.VariantPart,
    run_part=result.RunPart,
    add_to_variant=_add_to_variant,
    add_to_run=_add_to_run,
    views=[View("counters_in_time.view:counters", Section.RESOURCES, flag="counters")],
)
