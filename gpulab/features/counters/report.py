"""What ncu counted, as a part of the report, beside the work that is declared."""

from __future__ import annotations

from gpulab.features.counters import result
from gpulab.features.counters.events import KernelsCounted
from gpulab.features.counters.result import CountersReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import VariantReport, fields_of
from gpulab.report.state import VariantState


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    counted = variant.last(KernelsCounted)
    if counted is None:
        return report
    job = draft.state.timed_job
    moved = counted.together.metrics.get("dram_bytes")
    ratio = None
    if moved is not None and report.bytes and job and not job.declares_bytes_of_link:
        ratio = moved / report.bytes
    fields = fields_of(counted, "kernels", "together", "report")
    return report.with_parts(counters=CountersReport(**fields, dram_of_declared=ratio))


FEATURE = Feature(
    "counters",
    variant_part=result.VariantPart,
    add_to_variant=_add_to_variant,
    views=[
        View("counters.view:counters", Section.COUNTERS, flag="ncu"),
        View("counters.view:kernels", Section.RESOURCES),
    ],
)
