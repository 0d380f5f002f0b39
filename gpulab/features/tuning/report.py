"""What a variant chose with `gpulab.tune`, as a part of the report."""

from __future__ import annotations

from gpulab.core.events import Tuned
from gpulab.features.tuning import result
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import VariantReport
from gpulab.report.state import Keep, VariantState


def _first(before: Tuned, _: Tuned) -> Tuned:
    return before


def _add_to_variant(_: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    tuned = variant.last(Tuned)
    if tuned is None:
        return report
    return report.with_parts(tuning=tuned.choice.tuning, tuning_cached=tuned.cached)


FEATURE = Feature(
    "tuning",
    variant_part=result.VariantPart,
    keeps={Tuned: Keep(merge=_first)},
    add_to_variant=_add_to_variant,
    views=[View("tuning.view:tunings", Section.RESOURCES, flag="retune")],
)
