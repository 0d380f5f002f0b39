"""Several runs of the same scenario together: intervals over runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import log

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.jobs import Required
from gpulab.core.statuses import ExitCode, Verdict, first_in_order
from gpulab.features.repeats.findings import too_few_runs
from gpulab.report.commands import RepeatReport as RepeatReport
from gpulab.report.findings import not_shown_to_reach
from gpulab.report.gates import GateOutcome, outcome_of, required_outcome
from gpulab.report.report import RunReport
from gpulab.stats.statistics import FEWEST, as_speedup, median, median_estimate, median_interval
from gpulab.stats.verdicts import verdict_of


def repeat_reports(reports: Sequence[RunReport]) -> list[RepeatReport]:
    """An entry for each comparison of each scenario, and for each function, over all its runs."""
    groups: dict[tuple[object, ...], list[RunReport]] = {}
    for report in reports:
        key = (report.scenario, report.source_sha256, *sorted(report.params.items()))
        groups.setdefault(key, []).append(report)
    return [entry for group in groups.values() for entry in _entries(group)]


def gate(
    entries: Sequence[RepeatReport], required: Mapping[str, Required]
) -> tuple[ExitCode, Finding | None]:
    """Return whether every speedup over runs reaches what its scenario requires."""
    outcomes = []
    for scenario, of_scenario in required.items():
        if of_scenario:
            own = [entry for entry in entries if entry.scenario == scenario]
            outcomes.append(required_outcome(own, of_scenario, _why_not_shown))
    first = first_in_order(code for code, _ in outcomes)
    return next((outcome for outcome in outcomes if outcome[0] == first), (first, None))


def _why_not_shown(entry: RepeatReport, least: float) -> Finding | None:
    """Why it is not shown to reach so much; None where it is."""
    if entry.speedup is None or not entry.speedup.has_interval:
        return too_few_runs(entry.variant, runs=entry.runs, needed=FEWEST)
    if outcome_of(least, entry.speedup) == GateOutcome.HOLDS:
        return None
    return not_shown_to_reach(entry.variant, required=least)


def _entries(reports: Sequence[RunReport]) -> Iterator[RepeatReport]:
    whole = [report for report in reports if report.is_whole]
    pairs = dict.fromkeys(
        (entry.variant, entry.against) for report in whole for entry in report.comparisons
    )
    for variant, against in pairs:
        entry = _compared(whole, variant, against)
        if entry is not None:
            yield entry
    functions = [report for report in whole if report.functions]
    for name in dict.fromkeys(entry.name for report in functions for entry in report.variants):
        times_s = _times(whole, name)
        if times_s:
            head = whole[0]
            yield RepeatReport(
                scenario=head.scenario,
                params=head.params,
                variant=name,
                runs=len(times_s),
                span_s=_span_s(whole),
                time_s=median_estimate(times_s),
                times_s=times_s,
            )


def _compared(reports: Sequence[RunReport], variant: str, against: str) -> RepeatReport | None:
    speedups = []
    verdicts = set()
    for comparison in (comparison for report in reports for comparison in report.comparisons):
        if (comparison.variant, comparison.against) != (variant, against):
            continue
        if comparison.speedup:
            speedups.append(comparison.speedup.value)
            verdicts.add(comparison.verdict)
    if not speedups:
        return None
    speedup = Estimate(value=median(speedups))
    verdict = Verdict.INCONCLUSIVE
    if theta := median_interval([-log(value) for value in speedups]):
        speedup = as_speedup(theta).estimate
        verdict = verdict_of(theta)
    if Verdict.UNCHECKED in verdicts:
        verdict = Verdict.UNCHECKED
    times_s = _times(reports, variant)
    return RepeatReport(
        scenario=reports[0].scenario,
        params=reports[0].params,
        variant=variant,
        against=against,
        speedup=speedup,
        verdict=verdict,
        runs=len(speedups),
        span_s=_span_s(reports),
        speedups=speedups,
        time_s=median_estimate(times_s),
        times_s=times_s,
    )


def _span_s(reports: Sequence[RunReport]) -> float | None:
    """From the start of the first to the end of the last."""
    try:
        began = [datetime.fromisoformat(report.at) for report in reports]
        ended = [
            at + timedelta(seconds=report.progress.elapsed_s)
            for at, report in zip(began, reports, strict=True)
        ]
        return (max(ended) - min(began)).total_seconds()
    # a run file may hold any text, with and without a time zone
    except (ValueError, TypeError, OverflowError):
        return None


def _times(reports: Sequence[RunReport], name: str) -> list[float]:
    return [
        variant.time_s.value
        for report in reports
        for variant in report.variants
        if variant.name == name and variant.time_s
    ]
