"""How a run came out: its exit code and the reason for it, the first that holds."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.analysis.comparison import Comparison
from gpulab.protocol.events import VariantFailed
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Measure, TimeFunctions
from gpulab.protocol.statuses import Outcome, Status, Verdict
from gpulab.report.comparisons import control_differs
from gpulab.report.exit_codes import ExitCode
from gpulab.report.state import RunState


def outcome_of(
    state: RunState,
    control: Comparison | None,
    comparisons: Sequence[Comparison],
    required_speedup: float | None,
    *,
    under_way: bool,
) -> tuple[ExitCode | None, Finding | None]:
    """(exit code, reason), both None of a run under way. `required_speedup` is what every comparison must reach."""
    if under_way:
        return None, None
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
    if state.invalid:
        return ExitCode.INVALID, state.invalid[0]
    functions = isinstance(state.job, TimeFunctions)
    if (reason := control_differs(control)) and not functions:
        return ExitCode.INVALID, reason
    if control is not None and control.verdict == Verdict.INVALID:
        return ExitCode.INVALID, control.reason
    if Status.INVALID in statuses or any(comparison.verdict == Verdict.INVALID for comparison in comparisons):
        return ExitCode.INVALID, None
    if required_speedup is not None:
        code, reason = _against_required(comparisons, required_speedup)
        unchecked = [comparison for comparison in comparisons if comparison.verdict == Verdict.UNCHECKED]
        if code == ExitCode.MEASURED and unchecked and _is_exercise(state):
            return ExitCode.INCONCLUSIVE, finding("exercise_unchecked", unchecked[0].variant)
        return code, reason
    return ExitCode.MEASURED, None


def _is_exercise(state: RunState) -> bool:
    job = state.job
    return isinstance(job, Measure) and bool(job.subject.exercise)


def _placed(failure: VariantFailed) -> Finding:
    """The cause of a failure with its place: variant, stage and line."""
    cause = failure.cause
    place = {"stage": failure.stage.value, "line": failure.line}
    return Finding(code=cause.code, variant=failure.variant, values={**cause.values, **place})


def _baseline_skipped(reason: Finding | None) -> Finding:
    if reason is None:
        return finding("baseline_skipped", cause=None)
    return finding("baseline_skipped", cause=reason.code, **reason.values)


def _against_required(comparisons: Sequence[Comparison], required: float) -> tuple[ExitCode, Finding | None]:
    """Each comparison must be shown to reach the requirement, and fails it where its whole interval lies below."""
    if not comparisons:
        return ExitCode.INCONCLUSIVE, finding("nothing_compared", required=required)
    for comparison in comparisons:
        if comparison.high is not None and comparison.high < required:
            return ExitCode.SLOWER, finding("below_required", comparison.variant, required=required)
    for comparison in comparisons:
        contradicted = comparison.reason is not None and comparison.reason.code == "sustained_contradicts"
        if comparison.low is None or comparison.low < required or contradicted:
            return ExitCode.INCONCLUSIVE, finding("not_shown_to_reach", comparison.variant, required=required)
    return ExitCode.MEASURED, None
