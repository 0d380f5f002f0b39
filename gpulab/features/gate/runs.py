"""What a CI reads of the runs of one command: a test for each comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gpulab.core.findings import Finding
from gpulab.core.jobs import Required
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.core.units import with_interval
from gpulab.features.gate.outputs import Case, CaseStatus
from gpulab.report.gates import Gate, GateKind, GateOutcome, outcome_of
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence_with_place, with_reason
from gpulab.scenario import Param
from gpulab.stats.verdicts import Judged, shown

if TYPE_CHECKING:
    from gpulab.features.repeats.report import RepeatReport

Demanded = Callable[[str], Required]
"""By the name of the scenario."""
_BROKEN = (ExitCode.FAILED, ExitCode.INVALID, ExitCode.INTERRUPTED)


def cases_of_command(
    reports: Sequence[RunReport], over_runs: Sequence[RepeatReport], required_of: Demanded
) -> list[Case]:
    """Return the cases of each run: where it has no result, that; of its comparisons each: with a
    threshold it passes or fails by that, without one by its output. Of runs that were repeated the
    comparisons are those over all of them.
    """
    cases: list[Case] = []
    for report, name in zip(reports, _names(reports), strict=True):
        cases += _run(report, name)
        if not over_runs:
            required = Required(every=report.fail_below, variants=report.fail_below_of)
            cases += [
                _comparison(name, entry, entry.reason, required.of(entry.variant))
                for entry in report.comparisons
            ]
    for entry in over_runs:
        if entry.against is not None and entry.verdict is not None:
            least = required_of(entry.scenario).of(entry.variant)
            cases.append(_comparison(entry.scenario, entry, None, least))
    return cases


class Speedup(Judged, Protocol):
    """The speedup of a comparison in one run, or over several."""

    @property
    def variant(self) -> str: ...
    @property
    def against(self) -> str | None: ...


def _run(report: RunReport, name: str) -> Iterator[Case]:
    seconds = report.progress.elapsed_s
    reason = sentence_with_place(report.reason) if report.reason else ""
    if report.outcome == Conclusion.SKIPPED:
        yield Case(suite=name, name="run", status=CaseStatus.SKIPPED, message=reason)
    elif report.exit_code in _BROKEN:
        kind = str(report.outcome)
        yield Case(
            suite=name,
            name="run",
            status=CaseStatus.ERROR,
            kind=kind,
            message=reason,
            seconds=seconds,
        )
    else:
        yield Case(suite=name, name="run", seconds=seconds)


def _comparison(suite: str, entry: Speedup, reason: Finding | None, least: float | None) -> Case:
    name = f"{entry.variant} over {entry.against}"
    verdict = entry.verdict
    if verdict in (Verdict.WRONG, Verdict.INVALID):
        message = with_reason(str(verdict), reason)
        status = CaseStatus.FAILURE if verdict == Verdict.WRONG else CaseStatus.ERROR
        return Case(suite=suite, name=name, status=status, kind=verdict, message=message)
    if least is None:
        measured = f"{with_interval(entry.speedup)} {shown(entry).words}"
        return Case(suite=suite, name=name, message=measured)
    gate = Gate(
        scenario=suite,
        variant=entry.variant,
        kind=GateKind.SPEEDUP,
        threshold=least,
        outcome=outcome_of(least, entry.speedup),
        ratio=entry.speedup,
        reason=None if entry.speedup else reason,
    )
    return case_of(gate, name)


def case_of(gate: Gate, name: str) -> Case:
    """A gate as a test."""
    statuses = {
        GateOutcome.HOLDS: CaseStatus.PASSED,
        GateOutcome.FAILS: CaseStatus.FAILURE,
        GateOutcome.INCONCLUSIVE: CaseStatus.ERROR,
    }
    kinds = {GateOutcome.FAILS: gate.kind.value, GateOutcome.INCONCLUSIVE: "inconclusive"}
    return Case(
        suite=gate.scenario,
        name=name,
        status=statuses[gate.outcome],
        kind=kinds.get(gate.outcome, ""),
        message=gate.words,
    )


def _names(reports: Sequence[RunReport]) -> list[str]:
    return distinct_names([(report.scenario, report.params) for report in reports])


def distinct_names(runs: Sequence[tuple[str, Mapping[str, Param]]]) -> list[str]:
    """Scenarios with their parameters: of several runs of one, each with those that differ."""
    names = []
    for scenario, params in runs:
        alike = [others for other, others in runs if other == scenario]
        own = [
            f"{name}={value}"
            for name, value in params.items()
            if any(others.get(name) != value for others in alike)
        ]
        names.append(" ".join([scenario, *own]))
    return names
