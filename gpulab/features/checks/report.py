"""The trust report of every comparison: what was checked, and whether it may be believed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import exp, log
from operator import attrgetter
from statistics import median
from typing import Any

from msgspec.structs import replace

from gpulab.core.events import Checked, Event, Examined, ProcessStarted
from gpulab.core.findings import Declaration, Finding, Value
from gpulab.core.jobs import Measure
from gpulab.core.statuses import CheckKind, CheckState, Verdict
from gpulab.features.checks.findings import (
    calls_nothing_of_torch,
    check_not_made,
    checks_not_run,
    clocks_of_cpu,
    contention_of_threads,
    control_leaves_out_1,
    control_too_wide,
    few_processes,
    fewer_flops,
    flops_of_first_rank,
    less_on_new_values,
    measured_in_one_process,
    processes_correlated,
)
from gpulab.features.telemetry.findings import driver_did_not_answer, telemetry_off
from gpulab.features.telemetry.report import TelemetryState
from gpulab.report.comparisons import control_differs, failed_after
from gpulab.report.feature import Draft, Feature
from gpulab.report.report import VariantReport
from gpulab.report.sentences import declarations, doubted_check, is_doubt
from gpulab.report.state import Keep, RunState, VariantState
from gpulab.stats.comparison import (
    Check,
    Comparison,
    Trust,
    compared_with_baseline,
    grade_of,
    inner_interval,
)
from gpulab.stats.statistics import FEWEST, MOST_CORRELATION, Interval, positive_correlation

_LESS = 0.9
"""A variant that does less than this part of the work of the other is said to."""
_ENOUGH_TO_JUDGE = 2 * FEWEST
"""Of eight independent values one run in twenty looks as correlated as can be."""


@dataclass(frozen=True)
class Evidence:
    """All that is known of one comparison. `doubts`: the findings about it that cast doubt."""

    draft: Draft
    comparison: Comparison
    doubts: Sequence[Finding]
    units: Sequence[float] = ()
    """The values that its interval is over, in their order."""

    @property
    def names(self) -> tuple[str, str]:
        return self.comparison.variant, self.comparison.against

    @property
    def state(self) -> RunState:
        return self.draft.state

    @property
    def variants(self) -> list[VariantState]:
        """The variant, and what it is compared with."""
        return [self.state.variants[name] for name in self.names if name in self.state.variants]

    @property
    def reports(self) -> list[VariantReport]:
        found = (self.draft.variant(name) for name in self.names)
        return [report for report in found if report]


@cache
def results_of_checks() -> dict[CheckKind, Declaration[Any]]:
    """By kind what a check showed."""
    return {each.shows: each for each in declarations().values() if each.shows}


def _check(evidence: Evidence, kind: CheckKind) -> Check:
    examined = _examined(evidence, kind)
    check = _check_of(examined, kind) if examined else _DERIVED.get(kind, _not_made)(evidence, kind)
    doubt = next((doubt for doubt in evidence.doubts if doubted_check(doubt) == kind), None)
    if doubt is None or check.state == CheckState.FAILED:
        return check
    if check.state != CheckState.NOT_RUN:
        return _doubtful(kind, doubt)
    # why it did not run is no doubt, but may be the cause of one
    is_cause = check.result is not None and doubt.values.get("cause") == check.result.code
    return replace(check, result=doubt) if is_cause else check


_LONE_CHECKS = (
    CheckKind.OUTPUTS,
    CheckKind.TIMED_STEPS,
    CheckKind.INPUTS,
    CheckKind.NULL_ANSWERS,
    CheckKind.DETERMINISM,
)
"""What each variant has to show for itself: that the baseline passed says nothing of another."""


def _examined(evidence: Evidence, kind: CheckKind) -> Examined | None:
    """Return the worker's reports: the variant before the baseline and the run, failures first."""
    variant, *others = (*evidence.variants, evidence.state)
    own = variant.last(Examined, kind)
    reported = [examined for source in others if (examined := source.last(Examined, kind))]
    if kind in _LONE_CHECKS:
        reported = [
            examined
            for examined in reported
            if not examined.ok or examined.reason or (own is None and examined.skipped)
        ]
    if own is not None:
        reported.insert(0, own)
    return min(reported, key=_rank, default=None)


def _check_of(examined: Examined, kind: CheckKind) -> Check:
    if not examined.ok:
        return Check(kind=kind, state=CheckState.FAILED, result=examined.reason)
    if examined.skipped:
        return _not_run(kind, examined.skipped)
    if examined.reason:
        return _doubtful(kind, examined.reason)
    return _passed(kind, **{**examined.values, "count": examined.count})


def _passed(kind: CheckKind, **values: Value) -> Check:
    result = results_of_checks()[kind].from_values(values)
    return Check(kind=kind, state=CheckState.PASSED, result=result)


def _not_run(kind: CheckKind, reason: Finding) -> Check:
    return Check(kind=kind, state=CheckState.NOT_RUN, result=reason)


def _doubtful(kind: CheckKind, reason: Finding) -> Check:
    return Check(kind=kind, state=CheckState.DOUBTFUL, result=reason)


def _not_made(_: Evidence, kind: CheckKind) -> Check:
    """Return the check of a run that ended before it, or had no processes to make it."""
    return _not_run(kind, check_not_made())


def _outputs(evidence: Evidence, kind: CheckKind) -> Check:
    variant, *_ = evidence.variants
    if reason := next((other.unchecked for other in evidence.variants if other.unchecked), None):
        return _not_run(kind, reason)
    checked = variant.last(Checked)
    if checked is None:
        return _not_made(evidence, kind)
    if not checked.ok:
        return Check(kind=kind, state=CheckState.FAILED, result=checked.reason)
    return _passed(kind, error=checked.error, allowed=checked.tolerance)


def _work(evidence: Evidence, kind: CheckKind) -> Check:
    if len(evidence.reports) < 2:
        return _not_made(evidence, kind)
    after, before = evidence.reports
    if after.operations is None and after.flops_counted is None:
        return _not_made(evidence, kind)
    if not (after.operations or before.operations or after.flops_counted or before.flops_counted):
        return _not_run(kind, calls_nothing_of_torch())
    if fewer := _fewer(after, before):
        job = evidence.state.timed_job
        if job and job.ranks > 1:
            return _not_run(kind, flops_of_first_rank())
        return _doubtful(kind, fewer)
    return _passed(
        kind,
        items=after.items,
        baseline_items=before.items,
        operations=after.operations,
        baseline_operations=before.operations,
        flops=after.flops_counted,
        baseline_flops=before.flops_counted,
        declared_flops=after.flops,
    )


def _fewer(after: VariantReport, before: VariantReport) -> Finding | None:
    """That a variant does fewer FLOPs for the same items than what it is compared with."""
    own_items = after.items or 1.0
    items = before.items or 1.0
    if after.flops_counted is not None and before.flops_counted:
        own = after.flops_counted / own_items
        other = before.flops_counted / items
        if own < _LESS * other:
            return fewer_flops(after.name, flops=own, baseline=other)
    return None


def _control(evidence: Evidence, kind: CheckKind) -> Check:
    control = evidence.draft.control
    if control is None:
        return _not_made(evidence, kind)
    reason = control.reason or control_differs(control)
    if control.speedup is None or not control.speedup.has_interval:
        state = CheckState.FAILED if control.verdict in _REFUSED else CheckState.NOT_RUN
        return Check(kind=kind, state=state, result=reason)
    if reason is not None:
        return Check(kind=kind, state=CheckState.FAILED, result=reason)
    low, high = control.speedup.ends
    values: dict[str, Value] = {"speedup": control.speedup.value, "low": low, "high": high}
    holds_1 = low <= 1 <= high
    effect = _effect(evidence.comparison)
    if holds_1 and (effect is None or log(high / low) <= effect):
        return _passed(kind, **values)
    doubt = control_too_wide if holds_1 else control_leaves_out_1
    return _doubtful(kind, doubt.from_values(values))


def _effect(comparison: Comparison) -> float | None:
    """The log of the speedup that is claimed; None where none is."""
    if comparison.speedup is None or comparison.verdict in (Verdict.SAME, Verdict.INCONCLUSIVE):
        return None
    return abs(log(comparison.speedup.value))


def _processes(evidence: Evidence, kind: CheckKind) -> Check:
    units = len(evidence.units)
    if evidence.state.last(ProcessStarted) is None:
        return _doubtful(kind, measured_in_one_process())
    if units < FEWEST:
        return _doubtful(kind, few_processes(count=units, needed=FEWEST))
    correlation = positive_correlation(evidence.units)
    if correlation >= MOST_CORRELATION and units >= _ENOUGH_TO_JUDGE:
        return _doubtful(kind, processes_correlated(correlation=correlation))
    pinned = evidence.state.job is not None and evidence.state.job.seed is not None
    return _passed(kind, count=units, pinned=pinned, correlation=correlation)


def _contention(evidence: Evidence, kind: CheckKind) -> Check:
    if evidence.state.on_gpu:
        return _watched_on_gpu(evidence, kind, "processes")
    reports = evidence.reports
    shares = [report.contention for report in reports if report.contention is not None]
    if not shares:
        return _not_run(kind, contention_of_threads())
    faults = [
        (report.faults_per_block or 0.0) / (report.steps_per_block or 1) for report in reports
    ]
    switches = [report.switches_per_block or 0.0 for report in reports]
    return _passed(kind, share=max(shares), faults=max(faults), switches=max(switches))


def _clocks(evidence: Evidence, kind: CheckKind) -> Check:
    if not evidence.state.on_gpu:
        return _not_run(kind, clocks_of_cpu())
    return _watched_on_gpu(evidence, kind, "reasons")


def _watched_on_gpu(evidence: Evidence, kind: CheckKind, field: str) -> Check:
    """By telemetry: other processes on the GPU, or what holds its clocks back."""
    telemetry = evidence.state.part(TelemetryState)
    if not telemetry.sampling:
        return _not_run(kind, telemetry_off())
    started = telemetry.started
    if started is None or started.gpu is None:
        return _not_run(kind, (started and started.no_gpu_reason) or driver_did_not_answer())
    if cause := telemetry.unsupported.get(field):
        return _not_run(kind, Finding(code=cause))
    capped = telemetry.power_capped if kind == CheckKind.CLOCKS else 0
    return _passed(kind, readings=telemetry.while_measuring, capped=capped)


_DERIVED: Mapping[CheckKind, Callable[[Evidence, CheckKind], Check]] = {
    CheckKind.OUTPUTS: _outputs,
    CheckKind.WORK: _work,
    CheckKind.CONTROL: _control,
    CheckKind.PROCESSES: _processes,
    CheckKind.CONTENTION: _contention,
    CheckKind.CLOCKS: _clocks,
}
"""What is known without an event of the check."""

_DECISIVE = (CheckKind.TIMED_STEPS, CheckKind.INPUTS, CheckKind.CONTROL)
"""Without these a speedup may be of work that was never done."""
_REFUSED = (Verdict.WRONG, Verdict.INVALID)


def _add_trust(draft: Draft, comparison: Comparison) -> Comparison:
    """With its trust report."""
    pair = comparison.variant, comparison.against
    doubts = [
        doubt for doubt in draft.findings if doubt.variant in (None, *pair) and doubted_check(doubt)
    ]
    units = draft.samples.units(pair) if comparison.speedup is not None else ()
    others = [
        doubt
        for doubt in draft.findings
        if doubt.variant in (None, comparison.variant)
        and is_doubt(doubt)
        and not doubted_check(doubt)
    ]
    if failed := failed_after(draft, comparison):
        others.insert(0, failed)
    evidence = Evidence(draft, comparison, doubts, units)
    return replace(comparison, trust=_trust(evidence, others))


def _trust(evidence: Evidence, others: Sequence[Finding]) -> Trust:
    checks = [_check(evidence, kind) for kind in CheckKind]
    comparison = evidence.comparison
    if comparison.verdict in _REFUSED:
        return Trust(
            grade=None, reasons=[comparison.reason] if comparison.reason else [], checks=checks
        )
    states = {check.kind: check for check in checks}
    outputs = states[CheckKind.OUTPUTS]
    null_answers = states[CheckKind.NULL_ANSWERS]
    # Where a null answer passes as well, comparing outputs has shown nothing.
    without = [outputs] if outputs.state == CheckState.NOT_RUN else []
    without += [null_answers] if null_answers.state == CheckState.FAILED else []
    compared = not without
    unchecked = [check.result for check in without if check.result]
    doubts = [*others, *evidence.doubts, *_reasons(checks, on_gpu=evidence.state.on_gpu)]
    claims = comparison.speedup is not None and comparison.verdict != Verdict.INCONCLUSIVE
    grade = grade_of(claims=claims, compared=compared, doubts=doubts)
    return Trust(grade=grade, reasons=_each_once([*unchecked, *doubts]), checks=checks)


def _reasons(checks: Sequence[Check], *, on_gpu: bool) -> list[Finding]:
    """Return what the checks cast doubt with, and those that would decide and did not run."""
    reasons = [
        check.result for check in checks if check.state == CheckState.DOUBTFUL and check.result
    ]
    not_run = {check.kind: check.result for check in checks if check.state == CheckState.NOT_RUN}
    clocks = not_run.get(CheckKind.CLOCKS)
    if clocks and on_gpu:
        reasons.append(clocks)
    missing = [kind.value for kind in _DECISIVE if kind in not_run]
    return [*reasons, *([checks_not_run(checks=missing)] if missing else [])]


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    once: list[Finding] = []
    for entry in findings:
        if not any(entry.code == other.code and entry.variant == other.variant for other in once):
            once.append(entry)
    return once


_LOST = 1.1
"""What a speedup may be smaller on new values: predictors of branches learn the same ones."""
_LOST_OF_FEW = 1.5
"""The same where too few processes looked for an interval."""
_LOST_OF_GAIN = 0.1
"""The part of the time that it gains which a speedup may lose by that."""


def _together(before: Examined, event: Examined) -> Examined:
    """Merge two events of a check: failures outlive doubts, then what passed, then the rest."""
    decisive = event if _rank(event) <= _rank(before) else before
    count = sum(report.count for report in (before, event) if report.skipped is None)
    if not _ran(before) or not _ran(event):
        return replace(decisive, count=count)
    values = {**before.values, **event.values}
    both = before.values.keys() & event.values.keys()
    merged = {name: _merged(name, before.values[name], event.values[name]) for name in both}
    return replace(decisive, count=count, values={**values, **merged})


def _rank(event: Examined) -> int:
    if not event.ok:
        return 0
    if event.reason:
        return 1
    return 3 if event.skipped else 2


def _ran(event: Examined) -> bool:
    return event.ok and event.skipped is None


def _merged(name: str, before: Value, after: Value) -> Value:
    if not isinstance(before, (int, float)) or not isinstance(after, (int, float)):
        return before if after is None else after
    # A count of what a process did; of other numbers the largest stands, of all else the last.
    return before + after if name == "late" else max(before, after)


@dataclass
class NewValuesState:
    """The loss of each variant, by process: speedup on the same values over that on new ones."""

    ratios: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def _fold(state: RunState, event: Examined) -> None:
    ratio = event.values.get("lost_on_new")
    if event.check == CheckKind.TIMED_STEPS and event.variant and isinstance(ratio, float):
        state.part(NewValuesState).ratios[event.variant].append(log(ratio))


def _derived(draft: Draft) -> Iterator[Event]:
    """Catches a part of a speedup that comes of earlier steps and is too small for one process."""
    baseline = draft.state.baseline
    job = draft.state.timed_job
    if baseline is None or not isinstance(job, Measure):
        return
    compared = compared_with_baseline(job)
    for name, ratios in draft.state.part(NewValuesState).ratios.items():
        if name not in compared:
            continue
        lost = inner_interval(ratios) or _all_much(ratios)
        logs = draft.samples.units((name, baseline.name))
        if lost is None or not logs or lost.low <= log(_LOST):
            continue
        gain = exp(-median(logs)) - 1
        if gain <= 0 or exp(lost.low) - 1 <= _LOST_OF_GAIN * gain:
            continue
        ends = {"ratio": exp(lost.median), "low": exp(lost.low), "high": exp(lost.high)}
        reason = less_on_new_values(name, **ends)
        yield Examined(variant=name, check=CheckKind.TIMED_STEPS, count=0, reason=reason)


def _all_much(ratios: Sequence[float]) -> Interval | None:
    """Return the ends of a few processes, where the speedup of each is much smaller."""
    if min(ratios) < log(_LOST_OF_FEW):
        return None
    return Interval(median(ratios), min(ratios), max(ratios), len(ratios))


FEATURE = Feature(
    "checks",
    keeps={Examined: Keep(by=attrgetter("check"), merge=_together)},
    folds={Examined: _fold},
    derive_events=_derived,
    add_trust=_add_trust,
)
