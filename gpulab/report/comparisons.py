"""Every comparison that a run asks for, which variant is the best, and how the run came out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from gpulab.core.estimate import value_of
from gpulab.core.events import Examined, Planned, ProcessStarted, Stopped, VariantFailed
from gpulab.core.findings import Finding
from gpulab.core.jobs import Follow, Measure, Required, TimeFunctions
from gpulab.core.statuses import CheckKind, ExitCode, Outcome, Status, Verdict
from gpulab.report import findings
from gpulab.report.feature import Draft
from gpulab.report.gates import GateOutcome, required_outcome
from gpulab.report.gates import outcome_of as reached
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison, compare, pairs_of, refused
from gpulab.stats.statistics import Interval, for_comparisons

_REFUSED = {Status.WRONG: Verdict.WRONG, Status.INVALID: Verdict.INVALID}
_FAILED = (Status.FAILED, Status.OUT_OF_MEMORY)
_DIFFERS = (Verdict.FASTER, Verdict.SLOWER)


def comparisons_of(draft: Draft) -> tuple[Comparison | None, list[Comparison]]:
    """(the control, the comparisons). A control that differs, or an invalid run, makes all of them
    invalid.
    """
    state = draft.state
    job = state.timed_job
    if job is None:
        return None, []
    refusals = {name for name, variant in state.variants.items() if variant.status in _REFUSED}
    compared: list[Comparison] = []
    for pair in pairs_of(job, state.samples.measured | refusals):
        name, against = pair
        # A late failure keeps its complete pairs; a wrong variant has none.
        if against in refusals and name not in refusals and not is_above_roof(state, against):
            continue
        count, units, dropped = draft.samples.counts(pair)
        theta = draft.samples.interval(pair)
        comparison = compare(
            pair, theta, pairs=count, units=units, unit=state.unit, dropped=dropped
        )
        if not comparison.speedup and _has_failed(state, name):
            continue
        if state.invalid:
            comparison = refused(comparison, Verdict.INVALID, state.invalid[0])
        compared.append(comparison)
    if not compared:
        return None, []
    control, *others = compared
    if reason := control_differs(control):
        others = [refused(comparison, Verdict.INVALID, reason) for comparison in others]
    return control, [_apply_status(draft, comparison) for comparison in others]


def _has_failed(state: RunState, name: str) -> bool:
    variant = state.variants.get(name)
    return variant is not None and variant.status in _FAILED


def is_above_roof(state: RunState, name: str) -> bool:
    """Return whether a variant beat its device's limits, which makes its comparisons invalid."""
    variant = state.variants.get(name)
    examined = variant.last(Examined, CheckKind.PHYSICS) if variant else None
    return examined is not None and not examined.ok


def failed_after(draft: Draft, comparison: Comparison) -> Finding | None:
    """That one of the two variants failed after some of its pairs; None where neither did."""
    if comparison.speedup is None:
        return None
    unit = "processes" if draft.state.last(ProcessStarted) else "epochs"
    pair = (comparison.variant, comparison.against)
    for name in pair:
        if _has_failed(draft.state, name):
            return findings.failed_after(name, count=len(draft.samples.units(pair)), unit=unit)
    return None


def control_differs(control: Comparison | None) -> Finding | None:
    """That the control is faster or slower than the baseline; None where it is not."""
    if control is None or control.verdict not in _DIFFERS:
        return None
    return findings.control_differs(
        verdict=control.verdict.value, speedup=value_of(control.speedup)
    )


def _apply_status(draft: Draft, comparison: Comparison) -> Comparison:
    state = draft.state
    variant = state.variants.get(comparison.variant)
    baseline = state.baseline
    if variant is None or baseline is None:
        return comparison
    if verdict := _REFUSED.get(variant.status):
        return refused(comparison, verdict, variant.reason)
    if is_above_roof(state, comparison.against):
        return refused(comparison, Verdict.INVALID, state.variants[comparison.against].reason)
    unchecked = variant.unchecked or baseline.unchecked
    own_run = findings.checked_in_its_own_run.code
    if unchecked and unchecked.code != own_run and comparison.speedup is not None:
        return replace(comparison, verdict=Verdict.UNCHECKED, reason=unchecked)
    if failed := failed_after(draft, comparison):
        return replace(comparison, reason=failed)
    return comparison


def best_of(draft: Draft) -> tuple[str | None, list[str]]:
    """(the best variant or None, the candidates for it, the largest speedup first).

    The variant with the largest speedup over the baseline must be shown to beat each of the others,
    at a confidence that holds for all of these comparisons together.
    """
    samples = draft.samples
    speedups: dict[str, float] = {}
    thetas: dict[str, Interval] = {}
    for comparison in draft.comparisons:
        baseline = draft.variants[0].name
        variant = draft.variant(comparison.variant)
        if not comparison.speedup or comparison.against != baseline:
            continue
        if variant is None or variant.status not in (Status.OK, Status.PENDING):
            continue
        speedups[variant.name] = comparison.speedup.value
        if theta := samples.interval((variant.name, baseline)):
            thetas[variant.name] = theta
    ranked = sorted(speedups, key=lambda name: speedups[name], reverse=True)
    if not ranked:
        return None, []
    first, *others = ranked
    close = [name for name in others if not _beats(first, name, thetas, samples, len(others))]
    if close:
        return None, [first, *close]
    return first, [first]


def _beats(
    first: str, other: str, thetas: Mapping[str, Interval], samples: SampleView, comparisons: int
) -> bool:
    """Return whether `first` is shown to take less time than `other`: paired, or by intervals that
    do not overlap.
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


def outcome_of(draft: Draft, required: Required) -> tuple[ExitCode | None, Finding | None]:
    """(exit code, reason), both None of a run under way."""
    if draft.under_way:
        return None, None
    state = draft.state
    control = draft.control
    comparisons = draft.comparisons
    statuses = {variant.status for variant in state.variants.values()}
    if state.outcome is None:
        return ExitCode.INTERRUPTED, findings.no_end()
    if state.outcome == Outcome.CANCELLED and isinstance(state.job, Follow):
        return ExitCode.INTERRUPTED, _placed(state.failures[0]) if state.failures else None
    if state.outcome == Outcome.CANCELLED:
        if state.last(Stopped):
            return ExitCode.INTERRUPTED, findings.stopped_after_measuring()
        if state.last(Planned) is None:
            return ExitCode.INTERRUPTED, findings.stopped_before_measuring(reached=state.stage)
        return ExitCode.INTERRUPTED, findings.stopped_while_measuring()
    if state.failures or Status.FAILED in statuses or state.outcome != Outcome.DONE:
        return ExitCode.FAILED, _placed(state.failures[0]) if state.failures else None
    baseline = state.baseline
    if baseline and baseline.status == Status.SKIPPED and baseline.reason:
        return ExitCode.FAILED, findings.baseline_skipped.caused_by(baseline.reason)
    if Status.WRONG in statuses:
        return ExitCode.WRONG, None
    if state.invalid:
        return ExitCode.INVALID, state.invalid[0]
    functions = isinstance(state.job, TimeFunctions)
    if (reason := control_differs(control)) and not functions:
        return ExitCode.INVALID, reason
    if control is not None and control.verdict == Verdict.INVALID:
        return ExitCode.INVALID, control.reason
    verdicts = {comparison.verdict: comparison.variant for comparison in reversed(comparisons)}
    if Status.INVALID in statuses or Verdict.INVALID in verdicts:
        return ExitCode.INVALID, None
    if not required:
        return ExitCode.MEASURED, None
    code, reason = required_outcome(comparisons, required, _why_not_shown)
    job = state.job
    is_exercise = isinstance(job, Measure) and job.subject.exercise
    if code == ExitCode.MEASURED and is_exercise and Verdict.UNCHECKED in verdicts:
        return ExitCode.INCONCLUSIVE, findings.exercise_unchecked(verdicts[Verdict.UNCHECKED])
    return code, reason


def _placed(failure: VariantFailed) -> Finding:
    """The cause of a failure with its place: variant, stage and line."""
    cause = failure.cause
    place = {"stage": failure.stage.value, "line": failure.line}
    return Finding(code=cause.code, variant=failure.variant, values={**cause.values, **place})


def _why_not_shown(comparison: Comparison, least: float) -> Finding | None:
    """Why it is not shown to reach so much; None where it is."""
    reason = comparison.reason
    contradicted = reason and reason.code == findings.sustained_contradicts.code
    if reached(least, comparison.speedup) == GateOutcome.HOLDS and not contradicted:
        return None
    return findings.not_shown_to_reach(comparison.variant, required=least)
