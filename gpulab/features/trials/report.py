"""What each fix gained, and what each part of a step would gain: from comparisons with the step as
it is, and from windows of a program's running steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from operator import attrgetter
from statistics import median

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, StepPart, TriedFix
from gpulab.features.trials import result
from gpulab.features.trials.events import TrialsMeasured, TriedChange
from gpulab.features.trials.parts import BARE, PLAIN, name_of
from gpulab.features.trials.result import (
    BY_OTHERS,
    BY_SLOPE,
    LESS,
    FixReport,
    PartReport,
    TrialsReport,
    TriedReport,
    WhatIfReport,
)
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport, fields_of
from gpulab.report.state import Keep
from gpulab.stats.comparison import Comparison
from gpulab.stats.statistics import log_ratios, median_interval


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


# --- variants of a step of the lab ----------------------------------------------------------------


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
        parts=sorted(parts, key=_gain_of),
    )


def _part_report(
    part: StepPart, report: RunReport, step_s: float | None, delay_s: float
) -> PartReport:
    result = PartReport(**fields_of(part, "name", "lane", "why_not"), kind=part.kind.value)
    if not step_s or not delay_s:
        return result
    result = _with_slope(
        result,
        part.seconds / step_s if part.seconds else None,
        _slope(report, name_of(part.kind, part.name, others=False), delay_s / step_s),
    )
    others = _slope(report, name_of(part.kind, part.name, others=True), delay_s / step_s)
    if result.gain is None or result.share is None or others is None:
        return result
    # where all others were delayed, for each second that the part is made shorter
    scale = LESS * result.share
    gain = others.moved(lambda value: scale * (1 - value))
    return replace(result, gain=gain, gain_from=BY_OTHERS)


def _slope(report: RunReport, variant: str, delay: float) -> Estimate | None:
    """Return seconds of the step for each second of delay, which is relative to the step."""
    comparison = _comparison(report, variant)
    if comparison is None or comparison.speedup is None:
        return None
    return comparison.speedup.moved(lambda ratio: (1 / ratio - 1) / delay)


# --- windows of the running steps of a program ----------------------------------------------------


def trials_report(changes: Sequence[TriedChange]) -> TrialsReport:
    """Return the parts and the fixes, those that gain most first."""
    parts = [_delayed_part(change) for change in changes if change.kind == "part"]
    fixes = [_switched_fix(change) for change in changes if change.kind == "fix"]
    return TrialsReport(
        less=LESS,
        parts=sorted(parts, key=_gain_of),
        fixes=sorted(fixes, key=lambda fix: -(fix.speedup.value if fix.speedup else 0.0)),
    )


def _delayed_part(change: TriedChange) -> PartReport:
    part = PartReport(kind="part", name=change.name, lane="", why_not=change.why_not)
    pairs = [pair for pair in change.pairs if pair.delay_s > 0]
    if not pairs:
        return part
    share = median(pair.part_s / pair.plain_s for pair in pairs) or None
    slopes = [(pair.changed_s - pair.plain_s) / pair.delay_s for pair in pairs]
    return _with_slope(part, share, _estimate(slopes))


def _switched_fix(change: TriedChange) -> TriedReport:
    pairs = [pair for pair in change.pairs if pair.in_effect]
    fix = TriedReport(
        **fields_of(change, "name", "was", "now", "alters", "why_not"),
        pairs=len(change.pairs),
        in_effect=len(pairs),
    )
    if not pairs:
        return fix
    ratios = log_ratios([pair.changed_s for pair in pairs], [pair.plain_s for pair in pairs])
    return replace(fix, speedup=_estimate(ratios).moved(lambda ratio: exp(-ratio)))


def _estimate(values: Sequence[float]) -> Estimate:
    interval = median_interval(values)
    return interval.estimate if interval else Estimate(value=median(values), n=len(values))


def _with_slope(part: PartReport, share: float | None, slope: Estimate | None) -> PartReport:
    part = replace(part, share=share, slope=slope)
    if slope is None or share is None:
        return part
    return replace(part, gain=slope.moved(lambda value: LESS * share * value), gain_from=BY_SLOPE)


def _gain_of(part: PartReport) -> float:
    """For a list with the largest first."""
    return -(part.gain.value if part.gain else 0.0)


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
