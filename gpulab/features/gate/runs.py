"""What a CI reads of the runs of one command: a test for each comparison, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from gpulab.core.findings import Finding
from gpulab.core.jobs import Required
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.core.units import with_interval
from gpulab.features.gate.outputs import Case, CaseStatus, Metric
from gpulab.features.gate.report import Gate, GateKind, GateOutcome, outcome_of
from gpulab.features.repeats.report import OverRuns
from gpulab.report.report import RunReport, Time
from gpulab.report.sentences import sentence_with_place, with_reason
from gpulab.scenario import Param
from gpulab.stats.verdicts import Judged, shown

Demanded = Callable[[str], Required]
"""By the name of the scenario."""
_BROKEN = (ExitCode.FAILED, ExitCode.INVALID, ExitCode.INTERRUPTED)


def cases_of_command(
    reports: Sequence[RunReport], over_runs: Sequence[OverRuns], required_of: Demanded
) -> list[Case]:
    """Of each run, where it has no result, that; of its comparisons each: with a threshold it
    passes or fails by that, without one by its output. Of runs that were repeated the comparisons
    are those over all of them.
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


def metrics_of_command(reports: Sequence[RunReport], over_runs: Sequence[OverRuns]) -> list[Metric]:
    """The time of each variant, and that over its baseline; of smoke runs nothing."""
    if over_runs:
        return [metric for entry in over_runs for metric in _over_runs(entry)]
    metrics: list[Metric] = []
    for report, name in zip(reports, _names(reports), strict=True):
        if not report.smoke:
            device = report.device.name if report.device else ""
            metrics += [
                _time(f"{name}/{variant.name}", time, device) for variant, time in report.timed
            ]
            metrics += [
                metric
                for entry in report.comparisons
                if (metric := relative(f"{name}/{entry.variant}", entry, device))
            ]
    return metrics


class Speedup(Judged, Protocol):
    """Of a comparison in one run, or over several."""

    @property
    def variant(self) -> str: ...
    @property
    def against(self) -> str | None: ...
    @property
    def speedup(self) -> float | None: ...


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
        measured = f"{with_interval(entry.speedup, entry.low, entry.high)} {shown(entry).words}"
        return Case(suite=suite, name=name, message=measured)
    gate = Gate(
        scenario=suite,
        variant=entry.variant,
        kind=GateKind.SPEEDUP,
        threshold=least,
        outcome=outcome_of(least, entry.low, entry.high),
        ratio=entry.speedup,
        low=entry.low,
        high=entry.high,
        reason=reason if entry.low is None else None,
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


def relative(name: str, entry: Speedup, device: str) -> Metric | None:
    """The time as a multiple of that of the baseline; None without a speedup."""
    if not entry.speedup or entry.against is None:
        return None
    return Metric(
        name=name,
        over=entry.against,
        value=1 / entry.speedup,
        low=1 / entry.high if entry.high else None,
        high=1 / entry.low if entry.low else None,
        device=device,
    )


def _time(name: str, time: Time, device: str = "") -> Metric:
    return Metric(name=name, value=time.median, low=time.low, high=time.high, device=device)


def _over_runs(entry: OverRuns) -> Iterator[Metric]:
    name = f"{entry.scenario}/{entry.variant}"
    if entry.time_s:
        yield _time(name, entry.time_s)
    if metric := relative(name, entry, ""):
        yield metric


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
