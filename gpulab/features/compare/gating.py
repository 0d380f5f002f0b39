"""What a comparison of two sides must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from gpulab.core.statuses import conclusion_of, first_in_order
from gpulab.features.compare.findings import environment_may_explain, variant_not_compared
from gpulab.features.compare.report import ComparisonReport, Pairing, Row, ScenarioComparison
from gpulab.features.gate.report import (
    Gate,
    GateKind,
    GateOutcome,
    exit_code_of,
    least_ratio,
    outcome_of,
)
from gpulab.features.gate.thresholds import Thresholds


def gated(report: ComparisonReport, of: Callable[[str], Thresholds]) -> ComparisonReport:
    """With a gate for each threshold, which `of` gives by the name of the scenario, and the exit
    code that follows.
    """
    gates = [gate for each in report.comparisons for gate in _gates(each, of(each.scenario))]
    code = first_in_order((report.exit_code, exit_code_of(gates)))
    return replace(report, gates=gates, exit_code=code, outcome=conclusion_of(code))


def _gates(comparison: ScenarioComparison, thresholds: Thresholds) -> Iterator[Gate]:
    paired = any(row.pairing != Pairing.UNPAIRED for row in comparison.rows)
    for row in comparison.rows:
        demanded = thresholds.required.of(row.variant)
        if demanded is not None and row.against:
            yield _speedup_gate(comparison.scenario, row, demanded)
        if thresholds.slower is not None:
            gate = _slowdown_gate(comparison, row, thresholds.slower)
            # what unpaired times do not show, paired rows of the same scenario may
            if row.pairing != Pairing.UNPAIRED or not paired or gate.outcome == GateOutcome.FAILS:
                yield gate
    names = {row.variant for row in comparison.rows if row.against}
    for name, demanded in thresholds.speedups.items():
        if name not in names:
            yield Gate(
                scenario=comparison.scenario,
                variant=name,
                kind=GateKind.SPEEDUP,
                threshold=demanded,
                outcome=GateOutcome.INCONCLUSIVE,
                reason=variant_not_compared(),
            )


def _speedup_gate(scenario: str, row: Row, demanded: float) -> Gate:
    """Of B's own run, over its own baseline."""
    own = row.own_speedup
    low, high = (own.low, own.high) if own else (None, None)
    return Gate(
        scenario=scenario,
        variant=row.variant,
        kind=GateKind.SPEEDUP,
        threshold=demanded,
        outcome=outcome_of(demanded, low, high),
        ratio=own.value if own else None,
        low=low,
        high=high,
        reason=None if own else row.reason,
    )


def _slowdown_gate(comparison: ScenarioComparison, row: Row, most: float) -> Gate:
    """Of B against A. What fails beside a changed environment is inconclusive, unless both were
    measured in turn: then the environment is what is compared.
    """
    outcome = outcome_of(least_ratio(GateKind.SLOWDOWN, most), row.low, row.high)
    reason = row.reason if row.ratio is None else None
    changed = [each.what for each in comparison.environment_changed]
    if outcome == GateOutcome.FAILS and changed and row.pairing != Pairing.PAIRED:
        outcome = GateOutcome.INCONCLUSIVE
        reason = environment_may_explain(what=changed)
    return Gate(
        scenario=comparison.scenario,
        variant=row.variant,
        kind=GateKind.SLOWDOWN,
        threshold=most,
        outcome=outcome,
        ratio=row.ratio,
        low=row.low,
        high=row.high,
        reason=reason,
    )
