"""The trust report of every comparison: what was checked, what it showed, and whether the number may be believed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpulab.analysis.comparison import Comparison
from gpulab.analysis.trust import Check, Trust, grade_of
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import CheckKind, CheckState, Verdict
from gpulab.report.comparisons import failed_after
from gpulab.report.report import VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.report.trust_checks import DOUBTS, Evidence, checks_of

_DECISIVE = (CheckKind.TIMED_STEPS, CheckKind.INPUTS, CheckKind.CONTROL)
"""Without these a speedup may be of work that was never done."""
_REFUSED = (Verdict.WRONG, Verdict.INVALID)
_OF_THE_RUN = frozenset({"smoke_run", "outside_earlier_runs", "garbled_lines", "run_file_cut", "malformed_event_lines"})
"""Findings that cast doubt and are of no check."""


def with_trust(
    state: RunState,
    samples: SampleView,
    control: Comparison | None,
    comparisons: Sequence[Comparison],
    variants: Sequence[VariantReport],
    findings: Sequence[Finding],
) -> list[Comparison]:
    """The comparisons, each with its trust report; `findings` are all that weaken the result."""
    reports = {variant.name: variant for variant in variants}
    graded = []
    for comparison in comparisons:
        pair = comparison.variant, comparison.against
        doubts = [doubt for doubt in findings if doubt.variant in (None, *pair) and doubt.code in DOUBTS]
        units = samples.units(pair) if comparison.speedup is not None else ()
        evidence = Evidence(state, comparison, control, reports, doubts, units)
        others = [
            doubt for doubt in findings if doubt.code in _OF_THE_RUN and doubt.variant in (None, comparison.variant)
        ]
        if failed := failed_after(state, samples, comparison):
            others.insert(0, failed)
        graded.append(replace(comparison, trust=_trust(evidence, others)))
    return graded


def _trust(evidence: Evidence, others: Sequence[Finding]) -> Trust:
    checks, comparison = checks_of(evidence), evidence.comparison
    if comparison.verdict in _REFUSED:
        return Trust(grade=None, reasons=[comparison.reason] if comparison.reason else [], checks=checks)
    states = {check.kind: check for check in checks}
    outputs, null_answers = states[CheckKind.OUTPUTS], states[CheckKind.NULL_ANSWERS]
    # Where a null answer passes as well, comparing outputs has shown nothing.
    without = [outputs] if outputs.state == CheckState.NOT_RUN else []
    without += [null_answers] if null_answers.state == CheckState.FAILED else []
    compared, unchecked = not without, [check.result for check in without if check.result]
    doubts = [*others, *evidence.doubts, *_reasons(checks, on_gpu=evidence.on_gpu)]
    claims = comparison.speedup is not None and comparison.verdict != Verdict.INCONCLUSIVE
    grade = grade_of(claims=claims, compared=compared, doubts=doubts)
    return Trust(grade=grade, reasons=_each_once([*unchecked, *doubts]), checks=checks)


def _reasons(checks: Sequence[Check], *, on_gpu: bool) -> list[Finding]:
    """What the checks themselves cast doubt with, and those that would decide and did not run."""
    reasons = [check.result for check in checks if check.state == CheckState.DOUBTFUL and check.result]
    not_run = {check.kind: check.result for check in checks if check.state == CheckState.NOT_RUN}
    clocks = not_run.get(CheckKind.CLOCKS)
    if clocks and on_gpu:
        reasons.append(clocks)
    missing = [kind.value for kind in _DECISIVE if kind in not_run]
    return [*reasons, *([finding("checks_not_run", checks=missing)] if missing else [])]


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    once: list[Finding] = []
    for entry in findings:
        if not any(entry.code == other.code and entry.variant == other.variant for other in once):
            once.append(entry)
    return once
