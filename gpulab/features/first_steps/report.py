"""The first steps of a variant, as a part of the report: where they are the lesson, the time of its
step is that of a settled one.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from gpulab.core.estimate import Estimate
from gpulab.core.events import FirstSteps
from gpulab.core.statuses import Shows
from gpulab.features.first_steps import result
from gpulab.features.first_steps.result import CurveReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import VariantReport
from gpulab.report.state import Keep, VariantState
from gpulab.stats.statistics import median_interval

SETTLED, _WINDOW = 1.1, 5
"""A step, and the median of so many from it on, takes no longer than this many times a settled
one.
"""
_TAIL = 3
"""The last third of the steps is taken as settled."""


def curve_of(events: Sequence[FirstSteps]) -> CurveReport | None:
    """Return the curve of the first steps in each process, as many as all have; or None."""
    processes = [event.times_s for event in events]
    count = min(map(len, processes), default=0)
    if not count:
        return None
    steps = [_median_step([times[place] for times in processes]) for place in range(count)]
    settled = [median(times[count - max(1, count // _TAIL) : count]) for times in processes]
    limit = SETTLED * median(settled)
    medians = [step.value for step in steps]
    settles = (
        place
        for place in range(count)
        if medians[place] <= limit and median(medians[place : place + _WINDOW]) <= limit
    )
    settled_after = next(settles, count)
    late = settled_after > count - max(1, count // _TAIL)
    costs = [
        sum(max(0.0, time_s - own) for time_s in times[:settled_after])
        for times, own in zip(processes, settled, strict=True)
    ]
    return CurveReport(
        processes=len(events),
        build_s=_median_step([event.build_s for event in events]),
        steps_s=steps,
        settled_s=_median_step(settled),
        settled_after=None if late else settled_after,
        excess_s=_median_step(costs),
    )


def _median_step(values: Sequence[float]) -> Estimate:
    """The median of one value a process, with its interval."""
    interval = median_interval(values)
    if interval is None:
        return Estimate(value=median(values))
    return interval.estimate


def _step_time(variant: VariantState) -> Estimate | None:
    curve = curve_of(variant.all(FirstSteps))
    return curve.settled_s if curve else None


def _add_to_variant(_: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    return report.with_parts(first_steps=curve_of(variant.all(FirstSteps)))


FEATURE = Feature(
    "first steps",
    variant_part=result.VariantPart,
    keeps={FirstSteps: Keep(100)},
    step_time=_step_time,
    add_to_variant=_add_to_variant,
    views=[View("first_steps.view:first_steps", Section.FIGURE, lesson=Shows.CURVE)],
)
