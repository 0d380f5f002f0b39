"""From the events of a run to its report. Live and final, every face reads this one object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

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
from gpulab.core.jobs import AnyJob, Follow, Measure, Required, TimedJob, TimeFunctions, subject_of
from gpulab.core.statuses import ExitCode, Relation, Stage, Status, conclusion_of
from gpulab.features import features
from gpulab.report.comparisons import best_of, comparisons_of, outcome_of
from gpulab.report.feature import Draft
from gpulab.report.findings import never_started
from gpulab.report.report import LogReport, Method, Progress, RunReport, Together, fields_of
from gpulab.report.result_findings import explaining_findings, weakening_findings
from gpulab.report.state import RunState
from gpulab.report.variants import variant_report
from gpulab.stats.comparison import Comparison
from gpulab.stats.statistics import CONFIDENCE

ALL_TOGETHER = "all_together"
"""The variant with all fixes of the variants before it."""
CALIBRATION = "calibration"
_AFTER_THE_VERDICT = (Stage.SOLO_RUN, Stage.CEILINGS, Stage.PROFILE, Stage.COUNTERS, Stage.END)


def new_state() -> RunState:
    """The state of a run before its first event."""
    return RunState(features())


def run_parts() -> tuple[Any, ...]:
    """Return the parts that features add to the report of a run, where there is nothing yet."""
    return tuple(feature.run_part() for feature in features() if feature.run_part)


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
    """The report of one run. `required_speedup` is what every comparison must reach, in place of
    what the run itself was asked to.

    Without its end a run counts as interrupted; `live` reports what one under way has so far, at
    the time `now` on the events' clock, by default that of the last event: it has no exit code yet.
    `findings` are those of reading its file. The state is not changed.
    """
    under_way = live and state.outcome is None
    started = state.last(RunStarted)
    if started is None:
        if under_way:
            return RunReport(
                scenario="", parts=run_parts(), outcome=conclusion_of(None), exit_code=None
            )
        failed = ExitCode.FAILED
        return RunReport(
            scenario="",
            parts=run_parts(),
            outcome=conclusion_of(failed),
            exit_code=failed,
            reason=never_started(),
        )
    if state.outcome is None and not under_way:
        state = state.closed()
    if now is None or state.outcome is not None:
        now = state.t
    draft = Draft(state.copy_for_report(), state.samples.view(), features(), now, under_way)
    # What is wrong with a variant must be known before it is compared.
    for feature in features():
        for event in feature.derive_events(draft):
            draft.state.keep(event)
    draft.control, draft.comparisons = comparisons_of(draft)
    draft.variants = [variant_report(draft, variant) for variant in draft.state.variants.values()]
    for feature in features():
        draft.comparisons = [feature.add_to_comparison(draft, each) for each in draft.comparisons]
    # Features may withdraw a verdict, so the outcome of the run is known only now.
    job = started.request.job
    required = required_of(job) if required_speedup is None else Required(every=required_speedup)
    exit_code, reason = outcome_of(draft, required)
    draft.findings = [*findings, *(each for each in draft.state.invalid if each is not reason)]
    draft.findings += weakening_findings(draft)
    for feature in features():
        draft.findings += feature.findings(draft)
    # The grade of a comparison depends on all of the findings.
    for feature in features():
        draft.comparisons = [feature.add_trust(draft, each) for each in draft.comparisons]
    report = replace(
        _without_outcome(draft, started),
        at=started.at,
        fail_below=required.every,
        fail_below_of=required.variants,
        run_file=run_file,
        outcome=conclusion_of(exit_code),
        exit_code=exit_code,
        reason=reason,
    )
    for feature in features():
        report = feature.add_to_run(draft, report)
    return report


def required_of(job: AnyJob | Follow) -> Required:
    """Return the speedups that comparisons must reach: by the command, else by the scenario."""
    required = job.required if isinstance(job, TimedJob) else Required()
    if not required and isinstance(job, Measure):
        return Required(every=job.fail_below)
    return required


def _without_outcome(draft: Draft, started: RunStarted) -> RunReport:
    """The report without its outcome, and without the parts of features."""
    state = draft.state
    job = started.request.job
    subject = subject_of(job)
    best, best_among = best_of(draft)
    together = _together(draft)
    no_effect_reason = getattr(subject, "no_effect_reason", "")
    first = next(iter(state.all(ProcessStarted)), None)
    return RunReport(
        **fields_of(subject, "title", "source_sha256", "params", "exercise", "claim", "item"),
        **fields_of(job, "seed", "smoke", "quick", "per", "shows"),
        **fields_of(state.last(WorkerReady), "device", "environment"),
        **fields_of(first, "startup_s"),
        parts=run_parts(),
        scenario=getattr(subject, "scenario", CALIBRATION),
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
        progress=_progress(draft, started),
    )


def _together(draft: Draft) -> Together | None:
    """All fixes at once beside the product of the single ones; None where the scenario has no
    variant with all of them.
    """
    first: dict[str, Comparison] = {}
    for comparison in draft.comparisons:
        variant = draft.variant(comparison.variant)
        if variant is None or variant.status not in (Status.OK, Status.PENDING):
            continue
        named = draft.state.variants[comparison.variant].info.against
        if ALL_TOGETHER in first:  # later variants are not part of it
            break
        if comparison.against == named:  # a fix upon another one gains over that
            first.setdefault(comparison.variant, comparison)
    total = first.pop(ALL_TOGETHER, None)
    gains = [comparison.speedup.value for comparison in first.values() if comparison.speedup]
    if total is None or total.speedup is None or len(gains) < 2:
        return None
    product = prod(gains)
    relation = Relation.MULTIPLY
    low, high = total.speedup.ends
    if product > high:
        relation = Relation.OVERLAP
    elif product < low:
        relation = Relation.COMPOUND
    return Together(speedup=total.speedup, product=product, relation=relation)


def _method(draft: Draft) -> Method:
    state = draft.state
    calibrated = (variant.last(Calibrated) for variant in state.variants.values())
    intervals = sum(comparison.speedup is not None for comparison in draft.comparisons)
    stopped = state.last(Stopped)
    return Method(
        **fields_of(state.timed_job, "clock", "cache"),
        **fields_of(next((event for event in calibrated if event), None), "empty_block_s"),
        comparisons=intervals,
        familywise=min(1.0, intervals * (1 - CONFIDENCE)),
        epochs=state.samples.epochs,
        rounds=state.samples.rounds,
        unit=state.unit,
        processes=len(state.all(ProcessStarted)),
        stopped=stopped.reason if stopped else None,
    )


def _progress(draft: Draft, started: RunStarted) -> Progress:
    state = draft.state
    planned = state.last(Planned)
    planned_epochs = None
    planned_processes = None
    if planned and planned.processes:
        planned_processes = planned.processes
    elif planned:
        planned_epochs = planned.epochs
    measuring = state.stage == Stage.MEASURE
    stopped = state.last(Stopped) is not None
    return Progress(
        **fields_of(state.last(StageStarted), "stage", "variant", "detail"),
        epoch=state.samples.epochs + measuring,
        planned_epochs=planned_epochs,
        process=len(state.all(ProcessStarted)),
        planned_processes=planned_processes,
        remaining_s=_remaining_s(draft) if measuring else None,
        verdict_stands=stopped and state.stage in _AFTER_THE_VERDICT,
        rounds=state.samples.all_rounds,
        elapsed_s=draft.now - started.t,
    )


def _remaining_s(draft: Draft) -> float | None:
    """About so long to the end of measuring, by the pace of the processes so far.

    A run that ends as soon as it is decided has the rest of its time. None before a process of the
    plan ended, which says how long one takes.
    """
    state = draft.state
    planned = state.last(Planned)
    job = state.timed_job
    if planned is None or planned.expected_s is None or job is None or not planned.processes:
        return None
    starts = [event.t for event in state.all(ProcessStarted) if event.t > planned.t]
    ended = len(starts)
    if not ended:
        return None
    *_, begin = planned.t, *starts
    now = max(draft.now, planned.t)
    elapsed_s = now - planned.t
    pace_s = (begin - planned.t) / ended
    to_come = max(planned.processes - ended, 1)
    left_s = max(pace_s * to_come - (now - begin), pace_s * (to_come - 1))
    expected_s = job.time_s if job.brief else planned.expected_s
    return max(0.0, left_s, expected_s - elapsed_s)
