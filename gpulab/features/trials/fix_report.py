"""Fixes as a part of the report: what each gained."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, TriedFix
from gpulab.features.trials import fix_result as result
from gpulab.features.trials.fix_result import FixReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport, fields_of


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    job = draft.state.job
    if not isinstance(job, Measure) or not job.subject.fixes or not report.variants:
        return report
    fixes = [_fix_report(tried, report) for tried in job.subject.fixes]
    return report.with_parts(fixes=fixes)


def _fix_report(tried: TriedFix, report: RunReport) -> FixReport:
    fix = FixReport(**fields_of(tried, "name", "sentence", "why_not"))
    variant = next((each for each in report.variants if each.name == tried.name), None)
    if variant is None:
        return fix
    return _measured(fix, variant, report)


def _measured(fix: FixReport, variant: VariantReport, report: RunReport) -> FixReport:
    comparison = report.comparison(variant.name)
    if comparison is None:
        return replace(fix, reason=variant.reason or _failure(report, variant.name))
    return replace(
        fix,
        **fields_of(comparison, "speedup", "verdict"),
        **fields_of(variant, "error", "tolerance"),
        reason=variant.reason or comparison.reason or _failure(report, variant.name),
        gained=comparison.speedup is not None and (comparison.speedup.low or 0.0) > 1,
    )


def _failure(report: RunReport, name: str) -> Finding | None:
    return next((each.cause for each in report.failures if each.variant == name), None)


FEATURE = Feature(
    "fixes",
    run_part=result.RunPart,
    add_to_run=_add_to_run,
    views=[View("fixes.view:tried", Section.TRIED)],
)
