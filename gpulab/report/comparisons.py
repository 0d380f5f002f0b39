"""Every comparison that a run asks for, from its state: with refusals, unchecked outputs, and the control's word."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.analysis.comparison import Comparison, compare, pairs_of, refused
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import Status, Verdict
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState

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
        if against not in refusals or name in refusals
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
    baseline = next(iter(state.variants.values()))
    unchecked = variant.unchecked or baseline.unchecked
    if unchecked is None or comparison.speedup is None:
        failed = failed_after(state, samples, comparison)
        return replace(comparison, reason=failed) if failed else comparison
    return replace(comparison, verdict=Verdict.UNCHECKED, reason=unchecked)
