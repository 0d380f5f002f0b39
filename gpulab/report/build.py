"""From the events of a run to its report. Live and final, every face reads this one object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from msgspec.structs import replace

from gpulab.core.events import (
    Calibrated,
    Event,
    Planned,
    ProcessStarted,
    Reported,
    RunStarted,
    StageStarted,
    Stopped,
    WorkerReady,
)
from gpulab.core.findings import Finding
from gpulab.core.jobs import RunRequest, TimedJob, TimeFunctions, subject_of
from gpulab.core.statuses import (
    ExitCode,
    Relation,
    Stage,
    Status,
    conclusion_of,
)
from gpulab.features import features
from gpulab.report.comparisons import best_of, comparisons_of, outcome_of
from gpulab.report.feature import Draft
from gpulab.report.findings import never_started
from gpulab.report.found import explaining_findings, weakening_findings
from gpulab.report.report import (
    LogReport,
    Method,
    Progress,
    RunReport,
    Together,
    fields_of,
)
from gpulab.report.state import RunState
from gpulab.report.variants import variant_report
from gpulab.stats.comparison import Comparison, are_decided, outermost_interval, pairs_of
from gpulab.stats.statistics import CONFIDENCE

ALL_TOGETHER = "all_together"
"""The variant that has every fix of the ones before it."""
CALIBRATION = "calibration"
_ENOUGH_TO_FORESEE = 3
"""Processes, of which each takes about as long as the next."""
_AFTER_THE_VERDICT = (Stage.SOLO_RUN, Stage.CEILINGS, Stage.PROFILE, Stage.END)


def new_state() -> RunState:
    """Of a run before its first event."""
    return RunState(features())


def fold_all(events: Iterable[Event]) -> RunState:
    """The state after all of the events."""
    state = new_state()
    for event in events:
        state.fold(event)
    return state


def build_report(
    state: RunState,
    run_file: str = "",
    *,
    required_speedup: float | None = None,
    live: bool = False,
    now: float | None = None,
    findings: Sequence[Finding] = (),
) -> RunReport:
    """The report of one run. `required_speedup` is what every comparison must reach.

    Without its end a run counts as interrupted; `live` reports what one under way has so far, at
    the time `now` on the events' clock, by default that of the last event: it has no exit code yet.
    `findings` are what reading its file found out. The state stays as it is.
    """
    under_way = live and state.outcome is None
    started = state.last(RunStarted)
    if started is None:
        code, reason = (None, None) if under_way else (ExitCode.FAILED, never_started())
        return RunReport(scenario="", outcome=conclusion_of(code), exit_code=code, reason=reason)
    if state.outcome is None and not under_way:
        state = state.closed()
    now = state.t if now is None or state.outcome is not None else now
    draft = Draft(state.to_judge(), state.samples.view(), now, under_way)
    # What is wrong with a variant must be known before it is compared.
    for feature in features():
        for event in feature.judge(draft):
            draft.state.keep(event)
    draft.control, draft.comparisons = comparisons_of(draft)
    draft.variants = [variant_report(draft, variant) for variant in draft.state.variants.values()]
    for feature in features():
        draft.comparisons = [feature.of_comparison(draft, each) for each in draft.comparisons]
    # Features may take a verdict back, so how the run came out is known only now.
    required = required_speedup or getattr(started.request.job, "fail_below", None)
    code, reason = outcome_of(draft, required)
    draft.findings = [*findings, *(each for each in draft.state.invalid if each is not reason)]
    draft.findings += weakening_findings(draft)
    for feature in features():
        draft.findings += feature.findings(draft)
    # A comparison is worth what all of the findings leave of it.
    for feature in features():
        draft.comparisons = [feature.grade(draft, each) for each in draft.comparisons]
    report = replace(
        _of_request(draft, started.request),
        at=started.at,
        fail_below=required,
        run_file=run_file,
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
    )
    for feature in features():
        report = feature.of_run(draft, report)
    return report


def _of_request(draft: Draft, request: RunRequest) -> RunReport:
    """What was asked for, and what there is to say of it besides how it came out."""
    state, job, subject = draft.state, request.job, subject_of(request.job)
    best, best_among = best_of(draft)
    together = _together(draft)
    no_effect_reason = getattr(subject, "no_effect_reason", "")
    first = next(iter(state.all(ProcessStarted)), None)
    return RunReport(
        **fields_of(subject, "title", "source_sha256", "params", "exercise", "claim"),
        **fields_of(job, "seed", "smoke", "quick", "per", "shows"),
        **fields_of(state.last(WorkerReady), "device", "environment"),
        **fields_of(first, "startup_s"),
        scenario=subject.scenario if subject else CALIBRATION,
        functions=isinstance(job, TimeFunctions),
        method=_method(draft),
        control=draft.control,
        findings=draft.findings,
        explanations=explaining_findings(draft, together, no_effect_reason),
        variants=draft.variants,
        comparisons=draft.comparisons,
        best=best,
        best_among=best_among,
        no_effect_reason=no_effect_reason,
        together=together,
        figures=state.all(Reported),
        failures=state.failures,
        log=LogReport(
            head=list(state.log.head), skipped=state.log.skipped, tail=list(state.log.tail)
        ),
        progress=_progress(draft),
    )


def _together(draft: Draft) -> Together | None:
    """Of a scenario that ends with all its fixes at once; None of any other. Each fix against what
    it was added to.
    """
    first: dict[str, Comparison] = {}
    for comparison in draft.comparisons:
        variant = draft.variant(comparison.variant)
        if variant is None or variant.status not in (Status.OK, Status.PENDING):
            continue
        if ALL_TOGETHER in first:  # what stands below it is in none of it
            break
        first.setdefault(comparison.variant, comparison)
    total = first.pop(ALL_TOGETHER, None)
    gains = [comparison.speedup for comparison in first.values() if comparison.speedup]
    if total is None or total.speedup is None or len(gains) < 2:
        return None
    product = prod(gains)
    low, high = total.low or total.speedup, total.high or total.speedup
    relation = (
        Relation.OVERLAP
        if product > high
        else Relation.COMPOUND
        if product < low
        else Relation.MULTIPLY
    )
    return Together(
        product=product, speedup=total.speedup, low=total.low, high=total.high, relation=relation
    )


def _method(draft: Draft) -> Method:
    state, job = draft.state, draft.state.timed_job
    calibrated = (variant.last(Calibrated) for variant in state.variants.values())
    intervals = sum(comparison.low is not None for comparison in draft.comparisons)
    return Method(
        **fields_of(job, "clock", "cache"),
        **fields_of(next((event for event in calibrated if event), None), "empty_block_s"),
        comparisons=intervals,
        familywise=min(1.0, intervals * (1 - CONFIDENCE)),
        epochs=state.samples.epochs,
        rounds=state.samples.rounds,
        unit=state.unit,
        processes=len(state.all(ProcessStarted)),
        stopped=stopped.reason if (stopped := state.last(Stopped)) else None,
    )


def _progress(draft: Draft) -> Progress:
    state, planned = draft.state, draft.state.last(Planned)
    measuring = state.stage == Stage.MEASURE
    started = state.last(RunStarted)
    stopped = state.last(Stopped) is not None
    return Progress(
        **fields_of(state.last(StageStarted), "stage", "variant", "detail"),
        epoch=state.samples.epochs + measuring,
        planned_epochs=planned.epochs if planned and not planned.processes else None,
        process=len(state.all(ProcessStarted)),
        planned_processes=planned.processes or None if planned else None,
        remaining_s=_remaining_s(draft) if measuring else None,
        verdict_stands=stopped and state.stage in _AFTER_THE_VERDICT,
        rounds=state.samples.all_rounds,
        elapsed_s=draft.now - started.t if started else 0.0,
    )


def _remaining_s(draft: Draft) -> float | None:
    """To the end of measuring: by the plan, or by the pace of the processes so far where that is
    slower.

    A run that ends when it is decided says nothing before some of its processes agree that the
    fewest will do.
    """
    state = draft.state
    planned = state.last(Planned)
    job = state.timed_job
    if planned is None or planned.expected_s is None or job is None:
        return None
    elapsed_s = draft.now - planned.t
    ended = len(state.all(ProcessStarted)) - 1
    pace_s = elapsed_s / ended if ended > 0 else 0.0
    left_s = pace_s * (planned.processes - ended)
    if not job.brief:
        return max(0.0, planned.expected_s - elapsed_s, left_s)
    foreseen = _ENOUGH_TO_FORESEE <= ended < planned.processes
    return left_s if foreseen and _looks_decided(draft, job) else None


def _looks_decided(draft: Draft, job: TimedJob) -> bool:
    """Whether the run would be decided if its other processes lay between those that it has had."""
    pairs = pairs_of(job, draft.state.samples.measured)
    return are_decided([outermost_interval(draft.samples.units(pair), 1) for pair in pairs])
