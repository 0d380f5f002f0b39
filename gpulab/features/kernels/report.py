"""The kernels of each variant, as a part of the report, with what they differ in."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.core.jobs import Measure
from gpulab.features.kernels import result
from gpulab.features.kernels.differences import differences
from gpulab.features.kernels.events import KernelsCompiled
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport, fields_of
from gpulab.report.state import VariantState


def _add_to_variant(_: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    return report.with_parts(**fields_of(variant.last(KernelsCompiled), "kernels"))


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    """With what each variant's kernels have more or less than those they are held against."""
    job = draft.state.timed_job
    ladder = isinstance(job, Measure) and job.ladder
    # On a ladder a rung is held against the one below it, unless it names another than the
    # baseline.
    against = {
        name: None if ladder and variant.info.against == report.baseline else variant.info.against
        for name, variant in draft.state.variants.items()
    }
    found = differences({variant.name: variant.kernels for variant in report.variants}, against)
    variants = [
        variant.with_parts(kernel_difference=found.get(variant.name)) for variant in report.variants
    ]
    return replace(report, variants=variants)


FEATURE = Feature(
    "kernels",
    variant_part=result.VariantPart,
    add_to_variant=_add_to_variant,
    add_to_run=_add_to_run,
    views=[View("kernels.view:kernels", Section.RESOURCES)],
)
