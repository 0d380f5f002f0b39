"""What the reader of a result must know beside its numbers: judged here, put into words by the views."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.analysis.comparison import Comparison
from gpulab.analysis.telemetry import SLOWED_CODE
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import TimeFunctions, subject_of
from gpulab.protocol.statuses import Cache, Verdict
from gpulab.report.report import Control, Together, VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState, VariantState

_BUSY = 0.1
_SUSTAINED = 0.03
_PAGE = 4096
_MANY_FAULTS = 256
_SETTING_UP_S, _SETTING_UP = 0.5, 100
"""A first step as long as this, and as many times the median, compiled something or set it up."""


def warnings_of(state: RunState, samples: SampleView, variants: Sequence[VariantReport]) -> list[Finding]:
    """What weakens the result, of the run first."""
    warnings = [*state.findings, *_disturbances(state, samples)]
    if state.planned and state.planned.expensive:
        epochs = state.samples.epochs
        warnings.append(finding("expensive_builds", epochs=epochs, floor=state.planned.floor))
    functions = isinstance(state.job, TimeFunctions)
    if functions:
        warnings.append(finding("plain_functions"))
    checked = (variant.checked.tolerance for variant in state.variants.values() if variant.checked)
    tolerance = next(checked, None)
    for variant, report in zip(state.variants.values(), variants, strict=True):
        warnings += _warnings_of_variant(state, variant, tolerance, functions=functions)
        warnings += _solo_differs(state, variant, report)
    return warnings


def explanations_of(
    state: RunState,
    variants: Sequence[VariantReport],
    comparisons: Sequence[Comparison],
    control: Control | None,
    together: Together | None,
    no_effect_reason: str,
) -> list[Finding]:
    """What explains the result: why there is no effect, what was paid once, and costs that no line of code shows."""
    explanations = [*state.explanations]
    subject = subject_of(state.request.job) if state.request else None
    if subject and subject.hides:
        explanations.append(subject.hides)
    baseline = variants[0].name if variants else None
    if no_effect_reason:
        explanations += [
            finding("no_effect", comparison.variant, reason=no_effect_reason)
            for comparison in comparisons
            if comparison.verdict == Verdict.SAME and comparison.against == baseline
        ]
    functions = isinstance(state.job, TimeFunctions)
    if functions and control and control.verdict in (Verdict.FASTER, Verdict.SLOWER):
        explanations.append(finding("builds_differ", speedup=control.speedup))
    if together:
        explanations.append(
            finding(
                f"fixes_{together.relation}",
                product=together.product,
                speedup=together.speedup,
                low=together.low,
                high=together.high,
            )
        )
    for variant in variants:
        first_step_s = variant.first_step_s or 0.0
        if variant.time_s and first_step_s > max(_SETTING_UP_S, _SETTING_UP * variant.time_s.median):
            explanations.append(finding("first_step_sets_up", variant.name, first_step_s=first_step_s))
    for variant in variants:
        faults = (variant.faults_per_block or 0) / (variant.steps_per_block or 1)
        if faults >= _MANY_FAULTS:
            explanations.append(finding("page_faults", variant.name, faults=faults, bytes=faults * _PAGE))
    return explanations


def _disturbances(state: RunState, samples: SampleView) -> list[Finding]:
    """What telemetry saw of a device that was not as it should be."""
    telemetry = state.telemetry
    disturbances = list(telemetry.problems.values())
    if telemetry.lost:
        lost = telemetry.lost
        disturbances.append(finding("telemetry_ended_early", cause=lost.code, **lost.values))
    if telemetry.started and telemetry.started.gpu:
        for field, code in (("reasons", "clocks_not_checked"), ("processes", "processes_not_checked")):
            if reason := telemetry.unsupported.get(field):
                disturbances.append(finding(code, cause=reason))
    blocks = state.samples.blocks
    for (code, names), dropped in samples.dropped_blocks().items():
        key = "reasons" if code == SLOWED_CODE else "processes"
        disturbances.append(finding(code, dropped=dropped, blocks=blocks, **{key: list(names)}))
    if telemetry.power_capped:
        capped, readings = telemetry.power_capped, telemetry.while_measuring
        disturbances.append(finding("power_capped", capped=capped, readings=readings))
    return disturbances


def _warnings_of_variant(
    state: RunState, variant: VariantState, tolerance: float | None, *, functions: bool
) -> list[Finding]:
    """`tolerance` is the relative error that the baseline's dtype allows."""
    warnings, name, job = [], variant.info.name, state.timed_job
    if variant.warmed and variant.warmed.drifting:
        warnings.append(finding("warm_up_drifts", name, drift=variant.warmed.drift))
    on_cpu = job is not None and job.device == "cpu"  # elsewhere the host waits for the device, and may sleep
    if on_cpu and variant.contention is not None and variant.contention > _BUSY:
        warnings.append(finding("off_the_cpu", name, share=variant.contention))
    if variant.unchecked and not functions:
        warnings.append(finding(variant.unchecked.code, name, **variant.unchecked.values))
    allowed = variant.checked.tolerance if variant.checked else None
    if allowed and tolerance and allowed > tolerance:
        warnings.append(finding("lower_precision", name, allowed=allowed, baseline=tolerance))
    return warnings


def _solo_differs(state: RunState, variant: VariantState, report: VariantReport) -> list[Finding]:
    """Whether a variant alone runs as it did among the others: they share one power state and one cache."""
    interleaved_s, solo = report.clocks.get("wall"), variant.solo_run
    cold = state.timed_job is not None and state.timed_job.cache == Cache.COLD
    if solo is None or not interleaved_s or cold:  # flushing is most of a cold solo run
        return []
    change = solo.time_s / interleaved_s - 1
    if abs(change) <= _SUSTAINED:
        return []
    return [finding("solo_run_differs", variant.info.name, change=change, seconds=solo.ended - solo.started)]
