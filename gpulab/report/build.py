"""From the state of a run to its report. Live and final, every face reads this one object."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from statistics import median

from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.comparison import FLOOR, Comparison
from gpulab.protocol.events import VariantFailed
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import TELEMETRY_OFF, Calibrate, Measure, TimeFunctions, subject_of
from gpulab.protocol.statuses import Cache, Clock, FailureKind, Outcome, Stage, Status, Verdict
from gpulab.protocol.telemetry_fields import reason_letters
from gpulab.report.comparisons import comparisons_of, control_differs
from gpulab.report.exit_codes import Conclusion, ExitCode, conclusion_of
from gpulab.report.findings import explanations_of, warnings_of
from gpulab.report.goodput_summary import goodput_of
from gpulab.report.report import (
    CeilingsReport,
    Control,
    Failure,
    Figure,
    Method,
    Progress,
    RunReport,
    SoloReport,
    Time,
    Together,
    VariantReport,
)
from gpulab.report.roofline_points import disagreements, roofline_point, roofs_of
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState, VariantState

CLOSE = 0.05
"""A time per item within this of the best one is as good, where what it costs is memory or latency."""
ALL_TOGETHER = "all_together"
"""The variant that has every fix of the ones before it."""
CALIBRATION = "calibration"


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

    Without its end a run counts as interrupted; `live` reports what one under way has so far, at the time `now` on the
    events' clock, by default that of the last event. `findings` are what reading its file found out.
    """
    if state.request is None:
        return RunReport(
            scenario="", outcome=Conclusion.FAILED, exit_code=ExitCode.FAILED, reason=finding("never_started")
        )
    if state.outcome is None and not live:
        state.close()
    now = state.t if now is None or state.outcome is not None else now
    samples = state.samples.view(state.telemetry.windows.windows())
    control, comparisons = comparisons_of(state, samples)
    code, reason = _exit(state, control, comparisons, required_speedup)
    roofs = roofs_of(state)
    variants = [_variant(state, variant, samples, roofs, live=live) for variant in state.variants.values()]
    job, subject = state.request.job, subject_of(state.request.job)
    scenario = job.subject if isinstance(job, Measure) else None
    functions = isinstance(job, TimeFunctions)
    together = _together(comparisons)
    control_report = _control(control) if control else None
    no_effect_reason = scenario.no_effect_reason if scenario else ""
    warnings = [*findings, *warnings_of(state, samples, variants), *disagreements(state, roofs)]
    return RunReport(
        scenario=subject.scenario if subject else CALIBRATION,
        title=subject.title if subject else "",
        source_sha256=subject.source_sha256 if subject else "",
        params=scenario.params if scenario else {},
        seed=job.seed,
        smoke=not isinstance(job, Calibrate) and job.smoke,
        quick=not isinstance(job, Calibrate) and job.quick,
        functions=functions,
        per=job.per if isinstance(job, Measure) else "step",
        device=state.device,
        environment=state.environment,
        method=_method(state),
        control=control_report,
        claim=scenario.claim if scenario else "",
        run_file=run_file,
        outcome=Conclusion.UNDER_WAY if state.outcome is None and live else conclusion_of(code),
        exit_code=code,
        reason=reason,
        findings=warnings
        + explanations_of(variants, comparisons, control_report, together, no_effect_reason, functions=functions),
        variants=variants,
        comparisons=comparisons,
        best=_best(variants, comparisons),
        no_effect_reason=no_effect_reason,
        together=together,
        sweet_spot=_sweet_spot(variants)
        if isinstance(job, Measure) and job.increasing_memory and code == ExitCode.MEASURED
        else None,
        telemetry=state.telemetry.report(now),
        ceilings=_ceilings(state, roofs),
        figures=[Figure(variant=variant, name=name, value=value) for (variant, name), value in state.figures.items()],
        failures=[_failure(failure) for failure in state.failures],
        log=state.log.report(),
        progress=_progress(state, now),
    )


def _exit(
    state: RunState, control: Comparison | None, comparisons: list[Comparison], required_speedup: float | None
) -> tuple[ExitCode, Finding | None]:
    statuses = {variant.status for variant in state.variants.values()}
    if state.outcome is None:
        return ExitCode.INTERRUPTED, finding("no_end")
    if state.outcome == Outcome.CANCELLED:
        return ExitCode.INTERRUPTED, finding("stopped_after_measuring" if state.stopped else "stopped_while_measuring")
    if state.failures or Status.FAILED in statuses or state.outcome != Outcome.DONE:
        return ExitCode.FAILED, next((_placed(failure) for failure in state.failures), None)
    baseline = next(iter(state.variants.values()), None)
    if baseline is not None and baseline.status == Status.SKIPPED:
        return ExitCode.FAILED, _baseline_skipped(baseline.reason)
    if Status.WRONG in statuses:
        return ExitCode.WRONG, None
    functions = isinstance(state.job, TimeFunctions)
    if (reason := control_differs(control)) and not functions:
        return ExitCode.INVALID, reason
    if control is not None and control.verdict == Verdict.INVALID:
        return ExitCode.INVALID, control.reason
    if Status.INVALID in statuses or any(comparison.verdict == Verdict.INVALID for comparison in comparisons):
        return ExitCode.INVALID, None
    if required_speedup is not None:
        return _against_required(comparisons, required_speedup)
    return ExitCode.MEASURED, None


def _placed(failure: VariantFailed) -> Finding:
    """The cause of a failure with its place: variant, stage and line."""
    cause = failure.cause
    place = {"stage": failure.stage.value, "line": failure.line}
    return Finding(code=cause.code, variant=failure.variant, values={**cause.values, **place})


def _baseline_skipped(reason: Finding | None) -> Finding:
    if reason is None:
        return finding("baseline_skipped")
    return finding("baseline_skipped", reason=reason.code, **reason.values)


def _against_required(comparisons: list[Comparison], required: float) -> tuple[ExitCode, Finding | None]:
    """Each comparison must be shown to reach the requirement, and fails it where its whole interval lies below."""
    if not comparisons:
        return ExitCode.INCONCLUSIVE, finding("nothing_compared", required=required)
    for comparison in comparisons:
        if comparison.high is not None and comparison.high < required:
            return ExitCode.SLOWER, finding("below_required", comparison.variant, required=required)
    for comparison in comparisons:
        if comparison.low is None or comparison.low < required:
            return ExitCode.INCONCLUSIVE, finding("not_shown_to_reach", comparison.variant, required=required)
    return ExitCode.MEASURED, None


def _together(comparisons: Sequence[Comparison]) -> Together | None:
    """Of a scenario that ends with all its fixes at once; None of any other. Each fix against what it was added to."""
    first: dict[str, Comparison] = {}
    for comparison in comparisons:
        first.setdefault(comparison.variant, comparison)
    total = first.pop(ALL_TOGETHER, None)
    gains = [comparison.speedup for comparison in first.values() if comparison.speedup]
    if total is None or total.speedup is None or len(gains) < 2:
        return None
    product = prod(gains)
    low, high = total.low or total.speedup, total.high or total.speedup
    relation = "overlap" if product > high else "compound" if product < low else "multiply"
    return Together(product=product, speedup=total.speedup, low=total.low, high=total.high, relation=relation)


def _best(variants: Sequence[VariantReport], comparisons: Sequence[Comparison]) -> str | None:
    candidates = [
        comparison for comparison in comparisons if comparison.speedup and comparison.against == variants[0].name
    ]
    best = max(
        candidates,
        key=lambda comparison: (comparison.verdict != Verdict.INCONCLUSIVE, comparison.speedup or 0.0),
        default=None,
    )
    return best.variant if best else None


def _sweet_spot(variants: list[VariantReport]) -> str | None:
    """The smallest variant whose time per item comes close to the best."""
    times = {
        variant.name: variant.time_s.median / variant.items
        for variant in variants
        if variant.time_s and variant.time_s.low and variant.items
    }
    best = min(times.values(), default=0.0)
    return next((name for name, time in times.items() if time <= best * (1 + CLOSE)), None)


def _ceilings(state: RunState, roofs: RoofSet | None) -> CeilingsReport | None:
    if roofs is None or not roofs.ceilings:
        return None
    event = state.ceilings
    return CeilingsReport(
        at=event.at if event else None, cached=bool(event and event.cached), ceilings=list(roofs.ceilings)
    )


def _control(comparison: Comparison) -> Control:
    return Control(speedup=comparison.speedup, low=comparison.low, high=comparison.high, verdict=comparison.verdict)


def _method(state: RunState) -> Method:
    empty_blocks = [variant.calibrated.empty_block_s for variant in state.variants.values() if variant.calibrated]
    job = state.timed_job
    return Method(
        clock=job.clock if job else Clock.WALL,
        cache=job.cache if job else Cache.HOT,
        epochs=state.samples.epochs,
        rounds=state.samples.rounds,
        floor=state.planned.floor if state.planned else FLOOR,
        unit="pairs" if state.expensive else "epoch medians",
        empty_block_s=empty_blocks[0] if empty_blocks else None,
        stopped=state.stopped,
    )


def _progress(state: RunState, now: float) -> Progress:
    measuring = state.stage == Stage.MEASURE
    return Progress(
        stage=state.stage,
        variant=state.stage_variant,
        detail=state.stage_detail,
        epoch=state.samples.epochs + measuring,
        planned_epochs=state.planned.epochs if state.planned else None,
        rounds=state.samples.all_rounds,
        elapsed_s=now - state.started_t,
        awaiting_telemetry=_awaits_telemetry(state),
    )


def _awaits_telemetry(state: RunState) -> bool:
    on = state.request is not None and state.request.telemetry != TELEMETRY_OFF
    return on and state.outcome is None and state.device is not None and state.telemetry.started is None


def _failure(failure: VariantFailed) -> Failure:
    return Failure(
        variant=failure.variant,
        kind=failure.kind,
        stage=failure.stage,
        cause=failure.cause,
        line=failure.line,
        traceback=failure.traceback,
    )


def _variant(
    state: RunState, variant: VariantState, samples: SampleView, roofs: RoofSet | None, *, live: bool
) -> VariantReport:
    built, failure = variant.built, variant.failure
    status, reason = _final_status(state, variant, live=live)
    device = state.device
    one_thread = device is not None and device.kind == "cpu" and device.threads == 1
    time = _time(variant, status, samples, expensive=state.expensive)
    clocks = _clocks(state, variant, time)
    point = roofline_point(state, variant, roofs, time, clocks)
    by_host = bool(variant.blocks and state.timed_job and state.timed_job.clock == Clock.WALL)
    return VariantReport(
        name=variant.info.name,
        status=status,
        reason=reason,
        summary=variant.info.summary,
        claim=variant.info.claim,
        unchecked=variant.unchecked,
        items=built.items if built else None,
        bytes=built.bytes if built else None,
        flops=built.flops if built else None,
        dtype=built.dtype if built else None,
        time_s=time,
        clocks=clocks,
        bytes_per_s=_rate(built.bytes if built else None, time.median if time else None),
        flops_per_s=_rate(built.flops if built else None, time.median if time else None),
        steps_per_block=variant.calibrated.steps_per_block if variant.calibrated else None,
        contention=variant.contention if one_thread else None,
        faults_per_block=variant.faults / variant.blocks if by_host else None,
        switches_per_block=variant.switches / variant.blocks if by_host else None,
        sm_mhz=variant.sm_mhz / variant.blocks if variant.sm_mhz and variant.blocks else None,
        build_s=built.build_s if built else None,
        first_step_s=built.first_step_s if built else None,
        drifting=variant.warmed.drifting if variant.warmed else None,
        error=variant.checked.error if variant.checked else None,
        solo_run=_solo_run(state, variant),
        operations=variant.counted.operations if variant.counted else None,
        flops_counted=(variant.counted.flops or None) if variant.counted else None,
        roofline=point,
        goodput=goodput_of(state, variant, time, point),
        stage=failure.stage if failure else None,
        line=failure.line if failure else None,
    )


def _final_status(state: RunState, variant: VariantState, *, live: bool) -> tuple[Status, Finding | None]:
    """Once a run is over, no variant is pending any more."""
    if variant.status != Status.PENDING or (live and state.outcome is None):
        return variant.status, variant.reason
    if variant.info.name in state.samples.measured:
        return Status.OK, None
    if variant.failure and variant.failure.kind == FailureKind.TIMEOUT:
        return Status.FAILED, variant.failure.cause
    return Status.SKIPPED, finding("ended_before", variant.info.name)


def _time(variant: VariantState, status: Status, samples: SampleView, *, expensive: bool) -> Time | None:
    """Seconds per step with their interval, as far as they are known."""
    if status not in (Status.OK, Status.PENDING):
        return None
    name, items = variant.info.name, variant.items
    interval = samples.interval((name,), expensive=expensive)
    if interval is not None:
        return Time(median=interval.median * items, low=interval.low * items, high=interval.high * items)
    rough = samples.rough(name)
    if rough is not None:
        return Time(median=rough * items)
    return Time(median=variant.calibrated.step_s) if variant.calibrated else None


def _clocks(state: RunState, variant: VariantState, time: Time | None) -> dict[str, float]:
    job = state.timed_job
    clocks = {} if time is None or job is None else {job.clock.value: time.median}
    if variant.other_clock and variant.other_clock.times_s:
        clocks[variant.other_clock.clock.value] = median(variant.other_clock.times_s)
    return clocks


def _solo_run(state: RunState, variant: VariantState) -> SoloReport | None:
    solo, built = variant.solo_run, variant.built
    means = state.telemetry.solo_means(variant.info.name)
    if solo is None or means is None:
        return None
    cold = state.timed_job is not None and state.timed_job.cache == Cache.COLD
    return SoloReport(
        seconds=solo.ended - solo.started,
        readings=means.readings,
        time_s=solo.time_s,
        energy_j=None if means.energy_j is None or cold else means.energy_j / variant.items,
        means=means.means,
        clocks=reason_letters(means.reasons),
        bytes_per_s=_rate(built.bytes if built else None, solo.time_s),
        flops_per_s=_rate(built.flops if built else None, solo.time_s),
    )


def _rate(amount: int | None, seconds: float | None) -> float | None:
    return amount / seconds if amount and seconds else None
