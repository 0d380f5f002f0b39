"""Every comparison that a run asks for, which variant is the best, and how the run came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from gpulab.core.events import Examined, ProcessStarted, Stopped, VariantFailed
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.statuses import CheckKind, ExitCode, Outcome, Status, Verdict
from gpulab.report import findings
from gpulab.report.feature import Draft
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison, compare, pairs_of, refused
from gpulab.stats.statistics import Interval, for_comparisons

_REFUSED = {Status.WRONG: Verdict.WRONG, Status.INVALID: Verdict.INVALID}
_FAILED = (Status.FAILED, Status.OUT_OF_MEMORY)
_DIFFERS = (Verdict.FASTER, Verdict.SLOWER)


def comparisons_of(draft: Draft) -> tuple[Comparison | None, list[Comparison]]:
    """(the control, the comparisons). A control that differs, or an invalid run, takes back all the
    others.
    """
    state, samples, job = draft.state, draft.samples, draft.state.timed_job
    if job is None:
        return None, []
    refusals = {name for name, variant in state.variants.items() if variant.status in _REFUSED}
    failed = {name for name, variant in state.variants.items() if variant.status in _FAILED}
    pairs = [
        (name, against)
        for name, against in pairs_of(job, state.samples.measured | refusals)
        # What failed late keeps the pairs that it completed; what is wrong has none.
        if against not in refusals or name in refusals or is_above_roof(state, against)
    ]
    compared = []
    for pair in pairs:
        count, units, dropped = samples.counts(pair)
        theta = samples.interval(pair)
        compared.append(
            compare(pair, theta, pairs=count, units=units, unit=state.unit, dropped=dropped)
        )
    compared = [
        comparison
        for comparison in compared
        if comparison.speedup or comparison.variant not in failed
    ]
    if not compared:
        return None, []
    if state.invalid:
        compared = [
            refused(comparison, Verdict.INVALID, state.invalid[0]) for comparison in compared
        ]
    control, *others = compared
    if reason := control_differs(control):
        others = [refused(comparison, Verdict.INVALID, reason) for comparison in others]
    return control, [_with_status(draft, comparison) for comparison in others]


def is_above_roof(state: RunState, name: str) -> bool:
    """Whether a variant was faster than its device can be: what is compared with it says so."""
    variant = state.variants.get(name)
    examined = variant.last(Examined, CheckKind.PHYSICS) if variant else None
    return examined is not None and not examined.ok


def failed_after(draft: Draft, comparison: Comparison) -> Finding | None:
    """That one of the two failed later on, and after how much; None where both came to their
    end.
    """
    if comparison.speedup is None:
        return None
    state, pair = draft.state, (comparison.variant, comparison.against)
    for name in pair:
        if name in state.variants and state.variants[name].status in _FAILED:
            unit = "processes" if state.last(ProcessStarted) else "epochs"
            return findings.failed_after(name, count=len(draft.samples.units(pair)), unit=unit)
    return None


def control_differs(control: Comparison | None) -> Finding | None:
    """What is wrong with a control that did not come out the same as the baseline; None where
    nothing is.
    """
    if control is None or control.verdict not in _DIFFERS:
        return None
    return findings.control_differs(verdict=control.verdict.value, speedup=control.speedup)


def _with_status(draft: Draft, comparison: Comparison) -> Comparison:
    state = draft.state
    variant, baseline = state.variants.get(comparison.variant), state.baseline
    if variant is None or baseline is None:
        return comparison
    if verdict := _REFUSED.get(variant.status):
        return refused(comparison, verdict, variant.reason)
    if is_above_roof(state, comparison.against):
        return refused(comparison, Verdict.INVALID, state.variants[comparison.against].reason)
    unchecked = variant.unchecked or baseline.unchecked
    if (
        unchecked is None
        or unchecked.code == findings.checked_in_its_own_run.code
        or comparison.speedup is None
    ):
        failed = failed_after(draft, comparison)
        return replace(comparison, reason=failed) if failed else comparison
    return replace(comparison, verdict=Verdict.UNCHECKED, reason=unchecked)


def best_of(draft: Draft) -> tuple[str | None, list[str]]:
    """(the best variant or None, those among which it is, the largest speedup first).

    The variant with the largest speedup over the baseline must be shown to beat each of the others,
    at a confidence that holds for all of these comparisons together.
    """
    variants, samples = draft.variants, draft.samples
    ok = {variant.name for variant in variants if variant.status in (Status.OK, Status.PENDING)}
    speedups = {
        comparison.variant: comparison.speedup
        for comparison in draft.comparisons
        if comparison.speedup
        and comparison.against == variants[0].name
        and comparison.variant in ok
    }
    ranked = sorted(speedups, key=lambda name: speedups[name], reverse=True)
    if len(ranked) < 2:
        return (ranked[0] if ranked else None), ranked
    first, *others = ranked
    thetas = {
        name: theta for name in ranked if (theta := samples.interval((name, variants[0].name)))
    }
    close = [name for name in others if not _beats(first, name, thetas, samples, len(others))]
    return (None if close else first), [first, *close]


def _beats(
    first: str, other: str, thetas: Mapping[str, Interval], samples: SampleView, comparisons: int
) -> bool:
    """Whether `first` is shown to take less time than `other`: paired, or by intervals that do not
    overlap.
    """
    with suppress(KeyError):
        theta = samples.interval((first, other))
        return theta is not None and for_comparisons(theta, comparisons).high < 0
    with suppress(KeyError):
        theta = samples.interval((other, first))
        return theta is not None and for_comparisons(theta, comparisons).low > 0
    if first not in thetas or other not in thetas:
        return False
    both = [for_comparisons(thetas[name], 2 * comparisons) for name in (first, other)]
    return both[0].high < both[1].low


def outcome_of(
    draft: Draft, required_speedup: float | None
) -> tuple[ExitCode | None, Finding | None]:
    """(exit code, reason), both None of a run under way. `required_speedup` is what every
    comparison must reach.
    """
    if draft.under_way:
        return None, None
    state, control, comparisons = draft.state, draft.control, draft.comparisons
    statuses = {variant.status for variant in state.variants.values()}
    if state.outcome is None:
        return ExitCode.INTERRUPTED, findings.no_end()
    if state.outcome == Outcome.CANCELLED:
        if state.last(Stopped):
            return ExitCode.INTERRUPTED, findings.stopped_after_measuring()
        return ExitCode.INTERRUPTED, findings.stopped_while_measuring()
    if state.failures or Status.FAILED in statuses or state.outcome != Outcome.DONE:
        return ExitCode.FAILED, next((_placed(failure) for failure in state.failures), None)
    if state.baseline is not None and state.baseline.status == Status.SKIPPED:
        return ExitCode.FAILED, _baseline_skipped(state.baseline.reason)
    if Status.WRONG in statuses:
        return ExitCode.WRONG, None
    if state.invalid:
        return ExitCode.INVALID, state.invalid[0]
    functions = isinstance(state.job, TimeFunctions)
    if (reason := control_differs(control)) and not functions:
        return ExitCode.INVALID, reason
    if control is not None and control.verdict == Verdict.INVALID:
        return ExitCode.INVALID, control.reason
    if Status.INVALID in statuses or any(
        comparison.verdict == Verdict.INVALID for comparison in comparisons
    ):
        return ExitCode.INVALID, None
    if required_speedup is not None:
        code, reason = _against_required(comparisons, required_speedup)
        unchecked = [
            comparison for comparison in comparisons if comparison.verdict == Verdict.UNCHECKED
        ]
        if code == ExitCode.MEASURED and unchecked and _is_exercise(state):
            return ExitCode.INCONCLUSIVE, findings.exercise_unchecked(unchecked[0].variant)
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
        return findings.baseline_skipped(cause=None)
    return findings.baseline_skipped.because(reason)


def _against_required(
    comparisons: Sequence[Comparison], required: float
) -> tuple[ExitCode, Finding | None]:
    """Each comparison must be shown to reach the requirement, and fails it where its whole interval
    lies below.
    """
    if not comparisons:
        return ExitCode.INCONCLUSIVE, findings.nothing_compared(required=required)
    for comparison in comparisons:
        if comparison.high is not None and comparison.high < required:
            return ExitCode.SLOWER, findings.below_required(comparison.variant, required=required)
    for comparison in comparisons:
        code = comparison.reason.code if comparison.reason else None
        contradicted = code == findings.sustained_contradicts.code
        if comparison.low is None or comparison.low < required or contradicted:
            return ExitCode.INCONCLUSIVE, findings.not_shown_to_reach(
                comparison.variant, required=required
            )
    return ExitCode.MEASURED, None
