"""What each fix gained, and what each part of a step would gain: from comparisons with the step as
it is, and from windows of a program's running steps.
"""

from __future__ import annotations

from operator import attrgetter

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, StepPart, TriedFix
from gpulab.features.trials import result
from gpulab.features.trials.events import TrialsMeasured
from gpulab.features.trials.parts import BARE, PLAIN, name_of
from gpulab.features.trials.result import (
    BY_OTHERS,
    BY_SLOPE,
    LESS,
    FixReport,
    PartReport,
    WhatIfReport,
)
from gpulab.features.trials.windows import trials_report
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport, fields_of
from gpulab.report.state import Keep
from gpulab.stats.comparison import Comparison


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    if measured := draft.state.all(TrialsMeasured):
        most = max(measured, key=lambda event: sum(len(each.pairs) for each in event.changes))
        return report.with_parts(trials=trials_report(most.changes))
    job = draft.state.job
    if not isinstance(job, Measure):
        return report
    if job.subject.fixes and report.variants:
        fixes = [_fix_report(tried, report) for tried in job.subject.fixes]
        return report.with_parts(fixes=fixes)
    if job.subject.parts:
        return report.with_parts(what_if=_what_if(job, report))
    return report


def _fix_report(tried: TriedFix, report: RunReport) -> FixReport:
    fix = FixReport(**fields_of(tried, "name", "sentence", "why_not"))
    variant = _variant(report, tried.name)
    if variant is None:
        return fix
    reason = variant.reason
    comparison = _comparison(report, tried.name)
    if comparison is None:
        return replace(fix, reason=reason or _failure(report, tried.name))
    return replace(
        fix,
        **fields_of(comparison, "speedup", "verdict"),
        **fields_of(variant, "error", "tolerance"),
        reason=reason or comparison.reason or _failure(report, tried.name),
        gained=comparison.speedup is not None and (comparison.speedup.low or 0.0) > 1,
    )


def _variant(report: RunReport, name: str) -> VariantReport | None:
    return next((each for each in report.variants if each.name == name), None)


def _comparison(report: RunReport, name: str) -> Comparison | None:
    return next((each for each in report.comparisons if each.variant == name), None)


def _failure(report: RunReport, name: str) -> Finding | None:
    return next((each.cause for each in report.failures if each.variant == name), None)


def _what_if(job: Measure, report: RunReport) -> WhatIfReport:
    delay_s = job.subject.delay_s
    plain = _variant(report, PLAIN)
    step_s = plain.time_s.value if plain and plain.time_s else None
    parts = [_part_report(part, report, step_s, delay_s) for part in job.subject.parts]
    bare = _comparison(report, BARE)
    speedup = bare.speedup if bare else None
    return WhatIfReport(
        delay_s=delay_s,
        less=LESS,
        hooks_cost=speedup.moved(lambda ratio: ratio - 1) if speedup else None,
        elapsed_s=report.progress.elapsed_s,
        parts=sorted(parts, key=lambda part: -(part.gain.value if part.gain else 0.0)),
    )


def _part_report(
    part: StepPart, report: RunReport, step_s: float | None, delay_s: float
) -> PartReport:
    result = PartReport(**fields_of(part, "name", "lane", "why_not"), kind=part.kind.value)
    if not step_s or not delay_s:
        return result
    share = part.seconds / step_s if part.seconds else None
    delay = delay_s / step_s
    slope = _slope(report, name_of(part.kind, part.name, others=False), delay)
    result = replace(result, share=share, slope=slope)
    if slope is None or share is None:
        return result
    gain, gain_from = slope, BY_SLOPE
    if others := _slope(report, name_of(part.kind, part.name, others=True), delay):
        # where all others were delayed, for each second that the part is made shorter
        gain, gain_from = others.moved(lambda value: 1 - value), BY_OTHERS
    scale = LESS * share
    return replace(result, gain=gain.moved(lambda value: scale * value), gain_from=gain_from)


def _slope(report: RunReport, variant: str, delay: float) -> Estimate | None:
    """Return seconds of the step for each second of delay, which is relative to the step."""
    comparison = _comparison(report, variant)
    if comparison is None or comparison.speedup is None:
        return None
    return comparison.speedup.moved(lambda ratio: (1 / ratio - 1) / delay)


FEATURE = Feature(
    "trials",
    run_part=result.RunPart,
    keeps={TrialsMeasured: Keep(by=attrgetter("pid"))},
    add_to_run=_add_to_run,
    views=[
        View("trials.view:tried", Section.TRIED),
        View("trials.view:delayed", Section.TRIED),
        View("trials.view:trials", Section.PROGRAM),
    ],
)
