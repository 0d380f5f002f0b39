"""The first steps of a variant, as a part of the report: where they are the lesson, the time of its
step is that of a settled one.
"""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.core.events import FirstSteps
from gpulab.features.first_steps.analysis import Ends, curve_of, over_processes
from gpulab.report.feature import Draft, Feature
from gpulab.report.report import CurveReport, Time, VariantReport
from gpulab.report.state import Keep, VariantState


def _curve(variant: VariantState) -> CurveReport | None:
    events = variant.all(FirstSteps)
    curve = curve_of([event.times_s for event in events])
    if curve is None:
        return None
    return CurveReport(
        processes=len(events),
        build_s=_time(over_processes([event.build_s for event in events])),
        steps=[_time(step) for step in curve.steps],
        settled_s=_time(curve.settled),
        settled_after=curve.settled_after,
        excess_s=_time(curve.excess),
    )


def _time(ends: Ends) -> Time:
    return Time(median=ends.median, low=ends.low, high=ends.high)


def _step_time(variant: VariantState) -> Time | None:
    curve = _curve(variant)
    return curve.settled_s if curve else None


def _of_variant(_: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    return replace(report, first_steps=_curve(variant))


FIRST_STEPS = Feature(
    "first steps",
    keeps={FirstSteps: Keep(100)},
    step_time=_step_time,
    of_variant=_of_variant,
)
