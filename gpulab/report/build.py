"""From the state of a run to its report. Live and final, every face reads this one object."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msgspec.structs import replace

from gpulab.core.events import VariantFailed
from gpulab.core.finding import Finding, finding
from gpulab.core.jobs import TELEMETRY_OFF, Calibrate, Measure, TimedJob, TimeFunctions, subject_of
from gpulab.core.statuses import (
    Cache,
    Clock,
    ExitCode,
    Per,
    Relation,
    Shows,
    Stage,
    Status,
    conclusion_of,
)
from gpulab.features.alone.report import with_influence, with_sustained
from gpulab.features.checks.report import with_trust
from gpulab.features.goodput.report import with_step_work
from gpulab.features.history.report import outside_of_earlier, with_earlier
from gpulab.features.kernels.changes import differences
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.physics import with_physics
from gpulab.features.roofline.report import disagreements, roofs_of
from gpulab.report.comparisons import best_of, comparisons_of, outcome_of
from gpulab.report.findings import explanations_of, warnings_of
from gpulab.report.report import (
    CeilingsReport,
    Control,
    Failure,
    Figure,
    Method,
    Progress,
    RunReport,
    Together,
    VariantReport,
)
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.report.variants import variant_report
from gpulab.stats.comparison import Comparison, are_decided, pairs_of
from gpulab.stats.statistics import CONFIDENCE, Interval, median

CLOSE = 0.05
"""A time per item within this of the best one is as good, where what it costs is memory or
latency.
"""
ALL_TOGETHER = "all_together"
"""The variant that has every fix of the ones before it."""
CALIBRATION = "calibration"
_ENOUGH_TO_FORESEE = 3
"""Processes, of which each takes about as long as the next."""
_AFTER_THE_VERDICT = (Stage.SOLO_RUN, Stage.CEILINGS, Stage.PROFILE, Stage.END)


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
    request = state.request
    if request is None:
        code, reason = (None, None) if under_way else (ExitCode.FAILED, finding("never_started"))
        return RunReport(scenario="", outcome=conclusion_of(code), exit_code=code, reason=reason)
    if state.outcome is None and not under_way:
        state = state.closed()
    now = state.t if now is None or state.outcome is not None else now
    samples = state.samples.view(state.telemetry.windows.windows())
    roofs = roofs_of(state)
    state = with_influence(with_step_work(with_physics(state, samples, roofs)), samples)
    control, comparisons = comparisons_of(state, samples)
    variants = [
        variant_report(state, variant, samples, roofs, under_way=under_way)
        for variant in state.variants.values()
    ]
    variants = _with_kernel_differences(state, variants)
    comparisons = with_earlier(with_sustained(state, samples, comparisons, variants), state.earlier)
    required = required_speedup or (
        request.job.fail_below if isinstance(request.job, Measure) else None
    )
    code, reason = outcome_of(state, control, comparisons, required, under_way=under_way)
    weakening = [
        *findings,
        *(problem for problem in state.invalid if problem is not reason),
        *warnings_of(state, samples, variants),
        *disagreements(state, roofs),
        *outside_of_earlier(comparisons),
    ]
    comparisons = with_trust(state, samples, control, comparisons, variants, weakening)
    best, best_among = best_of(variants, comparisons, samples)
    job, subject = request.job, subject_of(request.job)
    scenario = job.subject if isinstance(job, Measure) else None
    functions = isinstance(job, TimeFunctions)
    ended = {variant.name for variant in variants if variant.status in (Status.OK, Status.PENDING)}
    together = _together([comparison for comparison in comparisons if comparison.variant in ended])
    control_report = _control(control) if control else None
    no_effect_reason = scenario.no_effect_reason if scenario else ""
    return RunReport(
        scenario=subject.scenario if subject else CALIBRATION,
        title=subject.title if subject else "",
        source_sha256=subject.source_sha256 if subject else "",
        at=state.at,
        params=scenario.params if scenario else {},
        seed=job.seed,
        smoke=not isinstance(job, Calibrate) and job.smoke,
        quick=not isinstance(job, Calibrate) and job.quick,
        functions=functions,
        per=job.per if isinstance(job, Measure) else Per.STEP,
        exercise=scenario.exercise if scenario else "",
        fail_below=required,
        shows=job.shows if isinstance(job, Measure) else Shows.SPEEDUP,
        device=state.device,
        environment=state.environment,
        method=_method(state, comparisons),
        control=control_report,
        claim=scenario.claim if scenario else "",
        run_file=run_file,
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
        findings=weakening,
        explanations=explanations_of(
            state, variants, comparisons, control_report, together, no_effect_reason
        ),
        variants=variants,
        comparisons=comparisons,
        best=best,
        best_among=best_among,
        no_effect_reason=no_effect_reason,
        together=together,
        sweet_spot=_sweet_spot(variants)
        if isinstance(job, Measure) and job.increasing_memory and code == ExitCode.MEASURED
        else None,
        telemetry=state.telemetry.report(now),
        ceilings=_ceilings(state, roofs),
        startup_s=state.processes[0].startup_s if state.processes else {},
        figures=[
            Figure(variant=variant, name=name, value=value)
            for (variant, name), value in state.figures.items()
        ],
        failures=[_failure(failure) for failure in state.failures],
        log=state.log.report(),
        progress=_progress(state, samples, now),
    )


def _with_kernel_differences(state: RunState, variants: list[VariantReport]) -> list[VariantReport]:
    job = state.timed_job
    ladder = isinstance(job, Measure) and job.ladder
    # On a ladder a rung is held against the one below it, unless it names another than the
    # baseline.
    baseline = next(iter(state.variants), None)
    against = {
        name: None if ladder and variant.info.against == baseline else variant.info.against
        for name, variant in state.variants.items()
    }
    found = differences({variant.name: variant.kernels for variant in variants}, against)
    return [replace(variant, kernel_difference=found.get(variant.name)) for variant in variants]


def _together(comparisons: Sequence[Comparison]) -> Together | None:
    """Of a scenario that ends with all its fixes at once; None of any other. Each fix against what
    it was added to.
    """
    first: dict[str, Comparison] = {}
    for comparison in comparisons:
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


def _sweet_spot(variants: list[VariantReport]) -> str | None:
    """The smallest variant whose time per item comes close to the best."""
    times = {
        variant.name: time.median
        for variant in variants
        if (time := variant.time_per_item) and time.low
    }
    best = min(times.values(), default=0.0)
    return next((name for name, time in times.items() if time <= best * (1 + CLOSE)), None)


def _ceilings(state: RunState, roofs: RoofSet | None) -> CeilingsReport | None:
    if roofs is None or not roofs.ceilings:
        return None
    event = state.ceilings
    return CeilingsReport(
        at=event.at if event else None,
        cached=bool(event and event.cached),
        ceilings=list(roofs.ceilings),
    )


def _control(comparison: Comparison) -> Control:
    return Control(
        speedup=comparison.speedup,
        low=comparison.low,
        high=comparison.high,
        verdict=comparison.verdict,
    )


def _method(state: RunState, comparisons: Sequence[Comparison]) -> Method:
    empty_blocks = [
        variant.calibrated.empty_block_s
        for variant in state.variants.values()
        if variant.calibrated
    ]
    job = state.timed_job
    intervals = sum(comparison.low is not None for comparison in comparisons)
    return Method(
        comparisons=intervals,
        familywise=min(1.0, intervals * (1 - CONFIDENCE)),
        clock=job.clock if job else Clock.WALL,
        cache=job.cache if job else Cache.HOT,
        epochs=state.samples.epochs,
        rounds=state.samples.rounds,
        unit=state.unit,
        processes=len(state.processes),
        empty_block_s=empty_blocks[0] if empty_blocks else None,
        stopped=state.stopped,
    )


def _progress(state: RunState, samples: SampleView, now: float) -> Progress:
    measuring = state.stage == Stage.MEASURE
    return Progress(
        stage=state.stage,
        variant=state.stage_variant,
        detail=state.stage_detail,
        epoch=state.samples.epochs + measuring,
        planned_epochs=state.planned.epochs
        if state.planned and not state.planned.processes
        else None,
        process=len(state.processes),
        planned_processes=state.planned.processes or None if state.planned else None,
        remaining_s=_remaining_s(state, samples, now) if measuring else None,
        verdict_stands=state.stopped is not None and state.stage in _AFTER_THE_VERDICT,
        rounds=state.samples.all_rounds,
        elapsed_s=now - state.started_t,
        awaiting_telemetry=_awaits_telemetry(state),
    )


def _remaining_s(state: RunState, samples: SampleView, now: float) -> float | None:
    """To the end of measuring: by the plan, or by the pace of the processes so far where that is
    slower.

    A run that ends when it is decided says nothing before some of its processes agree that the
    fewest will do.
    """
    planned, job = state.planned, state.timed_job
    if planned is None or planned.expected_s is None or job is None:
        return None
    elapsed_s = now - planned.t
    ended = len(state.processes) - 1
    pace_s = elapsed_s / ended if ended > 0 else 0.0
    left_s = pace_s * (planned.processes - ended)
    if not job.brief:
        return max(0.0, planned.expected_s - elapsed_s, left_s)
    return (
        left_s
        if _ENOUGH_TO_FORESEE <= ended < planned.processes and _looks_decided(state, samples, job)
        else None
    )


def _looks_decided(state: RunState, samples: SampleView, job: TimedJob) -> bool:
    """Whether the run would be decided if its other processes lay between those that it has had."""
    pairs = pairs_of(job, state.samples.measured)
    values = {pair: units for pair in pairs if (units := samples.units(pair))}
    between = [
        Interval(median(units), min(units), max(units), len(units)) for units in values.values()
    ]
    return len(between) > 1 and len(between) == len(pairs) and are_decided(between[0], between[1:])


def _awaits_telemetry(state: RunState) -> bool:
    on = state.request is not None and state.request.telemetry != TELEMETRY_OFF
    return (
        on
        and state.outcome is None
        and state.device is not None
        and state.telemetry.started is None
    )


def _failure(failure: VariantFailed) -> Failure:
    return Failure(
        variant=failure.variant,
        kind=failure.kind,
        stage=failure.stage,
        cause=failure.cause,
        line=failure.line,
        traceback=failure.traceback,
    )
