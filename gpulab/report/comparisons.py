"""Every comparison that a run asks for, from its state: with refusals, unchecked outputs, and the control's word."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.analysis.comparison import FLOOR, Comparison, compare, pairs_of, refused
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
        # A baseline that failed late keeps the pairs that it completed; one that is wrong has none.
        if name not in failed and (against not in refusals or name in refusals)
    ]
    floor = state.planned.floor if state.planned else FLOOR
    compared = []
    for pair in pairs:
        count, epochs, dropped = samples.counts(pair)
        theta = samples.interval(pair, expensive=state.expensive)
        compared.append(
            compare(pair, theta, pairs=count, epochs=epochs, expensive=state.expensive, floor=floor, dropped=dropped)
        )
    if not compared:
        return None, []
    if state.invalid:
        compared = [refused(comparison, Verdict.INVALID, state.invalid[0]) for comparison in compared]
    control, *others = compared
    if reason := control_differs(control):
        others = [refused(comparison, Verdict.INVALID, reason) for comparison in others]
    return control, [_with_status(state, comparison) for comparison in others]


def control_differs(control: Comparison | None) -> Finding | None:
    """What is wrong with a control that did not come out the same as the baseline; None where nothing is."""
    if control is None or control.verdict not in _DIFFERS:
        return None
    return finding("control_differs", verdict=control.verdict.value, speedup=control.speedup)


def _with_status(state: RunState, comparison: Comparison) -> Comparison:
    variant = state.variants.get(comparison.variant)
    if variant is None:
        return comparison
    if verdict := _REFUSED.get(variant.status):
        return refused(comparison, verdict, variant.reason)
    baseline = next(iter(state.variants.values()))
    unchecked = variant.unchecked or baseline.unchecked
    if unchecked is None or comparison.speedup is None:
        return comparison
    return replace(comparison, verdict=Verdict.UNCHECKED, reason=unchecked)
