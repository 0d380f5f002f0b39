"""What each part of a step would gain, from comparisons with the step in which it is delayed."""

from __future__ import annotations

from operator import attrgetter

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.jobs import Measure, StepPart
from gpulab.features.trials import result
from gpulab.features.trials.events import TrialsMeasured
from gpulab.features.trials.parts import BARE, PLAIN, name_of
from gpulab.features.trials.result import LESS, PartReport, WhatIfReport
from gpulab.features.trials.windows import trials_report
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, fields_of
from gpulab.report.state import Keep

BY_OTHERS, BY_SLOPE = "the others delayed", "its slope"


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    job = draft.state.job
    if measured := draft.state.all(TrialsMeasured):
        most = max(measured, key=lambda event: sum(len(each.pairs) for each in event.changes))
        return report.with_parts(trials=trials_report(most.changes))
    if not isinstance(job, Measure) or not job.subject.parts:
        return report
    subject = job.subject
    plain = next((each for each in report.variants if each.name == PLAIN), None)
    step_s = plain.time_s.value if plain and plain.time_s else None
    delay = subject.delay_s / step_s if step_s else None
    parts = [_part_report(part, report, step_s, delay) for part in subject.parts]
    what_if = WhatIfReport(
        delay_s=subject.delay_s,
        less=LESS,
        elapsed_s=report.progress.elapsed_s,
        parts=sorted(parts, key=lambda part: -(part.gain.value if part.gain else 0.0)),
    )
    return report.with_parts(what_if=_add_cost(what_if, report))


def _add_cost(what_if: WhatIfReport, report: RunReport) -> WhatIfReport:
    comparison = next((each for each in report.comparisons if each.variant == BARE), None)
    if comparison is None or comparison.speedup is None:
        return what_if
    return replace(what_if, hooks_cost=comparison.speedup.moved(lambda ratio: ratio - 1))


def _part_report(
    part: StepPart, report: RunReport, step_s: float | None, delay: float | None
) -> PartReport:
    result = PartReport(**fields_of(part, "name", "lane", "why_not"), kind=part.kind.value)
    if step_s is None or delay is None:
        return result
    share = part.seconds / step_s if part.seconds else None
    result = replace(result, share=share)
    slope = _slope(report, name_of(part.kind, part.name, others=False), delay)
    if slope is None:
        return result
    result = replace(result, slope=slope)
    others = _slope(report, name_of(part.kind, part.name, others=True), delay)
    if share is None:
        return result
    gain, gain_from = slope, BY_SLOPE
    if others:
        # where all others were delayed, for each second that the part is made shorter
        gain, gain_from = others.moved(lambda value: 1 - value), BY_OTHERS
    scale = LESS * share
    return replace(result, gain=gain.moved(lambda value: scale * value), gain_from=gain_from)


def _slope(report: RunReport, variant: str, delay: float) -> Estimate | None:
    """Return seconds of the step for each second of delay, which is relative to the step."""
    comparison = next((each for each in report.comparisons if each.variant == variant), None)
    if comparison is None or comparison.speedup is None:
        return None
    return comparison.speedup.moved(lambda ratio: (1 / ratio - 1) / delay)


FEATURE = Feature(
    "what_if",
    run_part=result.RunPart,
    keeps={TrialsMeasured: Keep(by=attrgetter("pid"))},
    add_to_run=_add_to_run,
    views=[
        View("what_if.view:delayed", Section.TRIED),
        View("what_if.trials_view:trials", Section.PROGRAM),
    ],
)
