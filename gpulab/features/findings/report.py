"""The rules applied to each variant of a report: what holds, the largest share of the step first.

What two rules find may be the same time. A fallback rule is left out where special ones explain
most of what it found: a wait for the device is a special reason for gaps between launches.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from gpulab.core.findings import Finding
from gpulab.core.jobs import Follow
from gpulab.core.statuses import Status
from gpulab.features.findings import computing, program_lines, result, waiting
from gpulab.features.findings.advice import Advice, NotJudged
from gpulab.features.findings.rule import Fix, Match, NotMeasured, Rule
from gpulab.features.findings.step import Step
from gpulab.report.feature import Draft, Feature
from gpulab.report.report import RunReport, VariantReport

RULES: Sequence[Rule] = (*waiting.RULES, *computing.RULES, *program_lines.RULES)
_MIN_OWN_SHARE = 0.5
"""A fallback rule needs so much of what it found for itself."""


def advice_of(report: RunReport, variant: VariantReport) -> tuple[list[Advice], list[NotJudged]]:
    """Return what the rules find in a variant, by each recording of it, and the rules that lack a
    measurement.
    """
    if variant.status not in (Status.OK, Status.PENDING) or variant.time_s is None:
        return [], []
    steps = [Step(report, each) for each in _recordings(variant)]
    matches: list[tuple[Rule, Match]] = []
    missing = []
    for rule in RULES:
        judged = rule.judge(steps[0])
        if isinstance(judged, Match):
            if all(isinstance(rule.judge(other), Match) for other in steps[1:]):
                matches.append((rule, judged))
        elif isinstance(judged, NotMeasured):
            missing.append(
                NotJudged(code=rule.name, missing=judged.measurement, flags=judged.flags)
            )
    return [_advice(variant.name, *entry) for entry in _ranked(matches)], missing


def _recordings(variant: VariantReport) -> list[VariantReport]:
    """As the first of its recordings has it, and as the second one does."""
    goodput = variant.goodput
    if goodput is None or not goodput.repeated:
        return [variant]
    second = structs.replace(goodput, partition=goodput.repeated)
    return [variant, variant.with_parts(goodput=second)]


def _ranked(matches: Sequence[tuple[Rule, Match]]) -> list[tuple[Rule, Match]]:
    """The largest share first, but a fallback rule after special ones unless it is about much more
    than they: these say more exactly what to change.
    """
    special = [entry for entry in matches if not entry[0].fallback]
    fallback = [entry for entry in matches if entry[0].fallback and _has_its_own(entry[1], special)]
    return sorted([*special, *fallback], key=_weight, reverse=True)


def _has_its_own(match: Match, special: Sequence[tuple[Rule, Match]]) -> bool:
    parts = set(match.takes)
    explained = sum(each.share for _, each in special if not parts.isdisjoint(each.takes))
    return match.share - explained >= _MIN_OWN_SHARE * match.share


def _weight(entry: tuple[Rule, Match]) -> float:
    rule, match = entry
    return match.share * (_MIN_OWN_SHARE if rule.fallback else 1.0)


def _advice(variant: str, rule: Rule, match: Match) -> Advice:
    fix = match.fix or Fix(rule.change, rule.code, rule.lesson)
    return Advice(
        finding=Finding(code=rule.name, variant=variant, values=dict(match.values)),
        share=match.share,
        evidence=list(match.evidence),
        change=fix.change,
        code=list(fix.code),
        lesson=fix.lesson,
    )


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    if draft.under_way or isinstance(draft.state.job, Follow):
        return report  # of a program the bill is the answer
    variants = []
    for variant in report.variants:
        advice, not_judged = advice_of(report, variant)
        variants.append(variant.with_parts(advice=advice, not_judged=not_judged))
    return structs.replace(report, variants=variants)


FEATURE = Feature("findings", variant_part=result.VariantPart, add_to_run=_add_to_run)
