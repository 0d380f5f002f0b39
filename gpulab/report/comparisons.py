"""Every comparison that a run asks for, from its state: with refusals, unchecked outputs, and the control's word."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.analysis.comparison import Comparison, compare, pairs_of, refused
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import CheckKind, Status, Verdict
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.report.variant_state import CHECKED_ELSEWHERE

_REFUSED = {Status.WRONG: Verdict.WRONG, Status.INVALID: Verdict.INVALID}
_FAILED = (Status.FAILED, Status.OUT_OF_MEMORY)
_DIFFERS = (Verdict.FASTER, Verdict.SLOWER)


def comparisons_of(state: RunState, samples: SampleView) -> tuple[Comparison | None, list[Comparison]]:
    """(the control, the comparisons). A control that differs, or an invalid run, takes back all the others."""
    job = state.timed_job
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
        compared.append(compare(pair, theta, pairs=count, units=units, unit=state.unit, dropped=dropped))
    compared = [comparison for comparison in compared if comparison.speedup or comparison.variant not in failed]
    if not compared:
        return None, []
    if state.invalid:
        compared = [refused(comparison, Verdict.INVALID, state.invalid[0]) for comparison in compared]
    control, *others = compared
    if reason := control_differs(control):
        others = [refused(comparison, Verdict.INVALID, reason) for comparison in others]
    return control, [_with_status(state, comparison, samples) for comparison in others]


def is_above_roof(state: RunState, name: str) -> bool:
    """Whether a variant was faster than its device can be: what is compared with it says so."""
    examined = state.variants[name].examined.get(CheckKind.PHYSICS) if name in state.variants else None
    return examined is not None and not examined.ok


def failed_after(state: RunState, samples: SampleView, comparison: Comparison) -> Finding | None:
    """That one of the two failed later on, and after how much; None where both came to their end."""
    pair = comparison.variant, comparison.against
    name = next((name for name in pair if name in state.variants and state.variants[name].status in _FAILED), None)
    if name is None or comparison.speedup is None:
        return None
    unit = "processes" if state.processes else "epochs"
    return finding("failed_after", name, count=len(samples.units(pair)), unit=unit)


def control_differs(control: Comparison | None) -> Finding | None:
    """What is wrong with a control that did not come out the same as the baseline; None where nothing is."""
    if control is None or control.verdict not in _DIFFERS:
        return None
    return finding("control_differs", verdict=control.verdict.value, speedup=control.speedup)


def _with_status(state: RunState, comparison: Comparison, samples: SampleView) -> Comparison:
    variant = state.variants.get(comparison.variant)
    if variant is None:
        return comparison
    if verdict := _REFUSED.get(variant.status):
        return refused(comparison, verdict, variant.reason)
    if is_above_roof(state, comparison.against):
        return refused(comparison, Verdict.INVALID, state.variants[comparison.against].reason)
    baseline = next(iter(state.variants.values()))
    unchecked = variant.unchecked or baseline.unchecked
    if unchecked is None or unchecked.code == CHECKED_ELSEWHERE or comparison.speedup is None:
        failed = failed_after(state, samples, comparison)
        return replace(comparison, reason=failed) if failed else comparison
    return replace(comparison, verdict=Verdict.UNCHECKED, reason=unchecked)
