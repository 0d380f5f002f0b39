"""What a comparison of two sides must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.findings import Finding
from gpulab.core.statuses import conclusion_of, first_in_order
from gpulab.features.compare.findings import (
    environment_may_explain,
    nothing_changed,
    on_one_side,
    variant_not_compared,
)
from gpulab.features.compare.report import (
    ComparisonReport,
    DifferenceKind,
    Pairing,
    Row,
    ScenarioComparison,
)
from gpulab.report.findings import nothing_compared
from gpulab.report.gates import (
    Gate,
    GateKind,
    GateOutcome,
    exit_code_of,
    least_ratio,
    outcome_of,
)

if TYPE_CHECKING:
    from gpulab.features.gate.thresholds import Thresholds


def gated(report: ComparisonReport, of: Callable[[str], Thresholds]) -> ComparisonReport:
    """With a gate for each threshold, which `of` gives by the name of the scenario, and the exit
    code that follows.
    """
    gates = [gate for each in report.comparisons for gate in _gates(each, of(each.scenario))]
    gates += _gates_of_missing(report.findings, of)
    code = first_in_order((report.exit_code, exit_code_of(gates)))
    return replace(report, gates=gates, exit_code=code, outcome=conclusion_of(code))


def _gates_of_missing(
    findings: Sequence[Finding], of: Callable[[str], Thresholds]
) -> Iterator[Gate]:
    """Yield gates of scenarios that have no run after the change: nothing of them is shown."""
    for finding in findings:
        if finding.code == on_one_side.code and finding.values.get("side") == "A":
            scenario = str(finding.values.get("scenario"))
            thresholds = of(scenario)
            demanded = [
                ("", GateKind.SLOWDOWN, thresholds.slower),
                ("", GateKind.SPEEDUP, thresholds.speedup),
                *((name, GateKind.SPEEDUP, least) for name, least in thresholds.speedups.items()),
            ]
            for variant, kind, threshold in demanded:
                if threshold is not None:
                    yield _not_shown(scenario, variant, kind, threshold, finding)


def _not_shown(
    scenario: str, variant: str, kind: GateKind, threshold: float, reason: Finding
) -> Gate:
    return Gate(
        scenario=scenario,
        variant=variant,
        kind=kind,
        threshold=threshold,
        outcome=GateOutcome.INCONCLUSIVE,
        reason=reason,
    )


def _gates(comparison: ScenarioComparison, thresholds: Thresholds) -> Iterator[Gate]:
    """None where nothing that runs changed: then nothing was measured."""
    if any(finding.code == nothing_changed.code for finding in comparison.findings):
        return
    scenario = comparison.scenario
    paired = any(row.pairing != Pairing.UNPAIRED for row in comparison.rows)
    compared = {row.variant for row in comparison.rows if row.against}
    if not compared:  # functions and programs: A is their baseline
        compared = {row.variant for row in comparison.rows if row.pairing == Pairing.PAIRED}
    for row in comparison.rows:
        least = thresholds.required.of(row.variant)
        if least is not None and row.variant in compared:
            yield _speedup_gate(scenario, row, least)
        if thresholds.slower is not None:
            gate = _slowdown_gate(comparison, row, thresholds.slower)
            # what unpaired times do not show, paired rows of the same scenario may
            if row.pairing != Pairing.UNPAIRED or not paired or gate.outcome == GateOutcome.FAILS:
                yield gate
    for name, least in thresholds.speedups.items():
        if name not in compared:
            yield _not_shown(scenario, name, GateKind.SPEEDUP, least, variant_not_compared())
    if thresholds.speedup is not None and not compared:
        least = thresholds.speedup
        reason = nothing_compared(required=least)
        yield _not_shown(scenario, "", GateKind.SPEEDUP, least, reason)


def _speedup_gate(scenario: str, row: Row, demanded: float) -> Gate:
    """Judge B's own speedup, over its own baseline; over A where it has none."""
    own = row.own_speedup if row.against else row.ratio
    return Gate(
        scenario=scenario,
        variant=row.variant,
        kind=GateKind.SPEEDUP,
        threshold=demanded,
        outcome=outcome_of(demanded, own),
        ratio=own,
        reason=None if own else row.reason,
    )


def _slowdown_gate(comparison: ScenarioComparison, row: Row, most: float) -> Gate:
    """Judge the slowdown of B against A. Beside a changed environment, or other parameters, nothing
    is shown of the code, unless both were measured in turn: then the environment is what is
    compared.
    """
    outcome = outcome_of(least_ratio(GateKind.SLOWDOWN, most), row.ratio)
    reason = row.reason if row.ratio is None else None
    kinds = (DifferenceKind.ENVIRONMENT, DifferenceKind.PARAMETERS)
    changed = [each.what for each in comparison.differences if each.kind in kinds]
    if changed and row.pairing != Pairing.PAIRED:
        outcome = GateOutcome.INCONCLUSIVE
        reason = environment_may_explain(what=changed)
    return Gate(
        scenario=comparison.scenario,
        variant=row.variant,
        kind=GateKind.SLOWDOWN,
        threshold=most,
        outcome=outcome,
        ratio=row.ratio,
        reason=reason,
    )
