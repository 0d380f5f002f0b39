"""What a CI reads of a comparison: a test for each gate, or else for each row."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.core.statuses import Conclusion, Verdict
from gpulab.features.compare.report import ComparisonReport
from gpulab.features.compare.words import conclusion, title
from gpulab.features.gate.outputs import Case, CaseStatus
from gpulab.features.gate.runs import case_of, distinct_names
from gpulab.report.gates import Gate, GateKind
from gpulab.report.sentences import sentence

_BROKEN = (Conclusion.FAILED, Conclusion.INVALID, Conclusion.INTERRUPTED)


def cases_of(report: ComparisonReport) -> list[Case]:
    """Beside the gates, runs of B without a result, and rows whose output is wrong."""
    cases = [case_of(gate, _name(gate)) for gate in report.gates]
    for each, suite in zip(report.comparisons, _suites(report), strict=True):
        if each.b.outcome in _BROKEN:
            status, kind = CaseStatus.ERROR, str(each.b.outcome)
            cases.append(Case(suite=suite, name="run", status=status, kind=kind))
        for row in each.rows:
            case = Case(suite=suite, name=title(row), message=conclusion(row))
            if row.verdict == Verdict.WRONG:
                cases.append(replace(case, status=CaseStatus.FAILURE, kind=row.verdict))
            elif not report.gates:
                cases.append(case)
    if report.reason:
        case = Case(suite=report.after, name="compare", message=sentence(report.reason))
        cases.append(replace(case, status=CaseStatus.ERROR))
    return cases


def _name(gate: Gate) -> str:
    over = "after over before" if gate.kind == GateKind.SLOWDOWN else "over its baseline"
    return f"{gate.variant or 'all variants'}, {over}"


def _suites(report: ComparisonReport) -> list[str]:
    return distinct_names([(each.scenario, each.b.params) for each in report.comparisons])
