"""The rules applied to each variant of a report: what holds, in the order of what it would gain.

What two rules find may be the same time. Each takes from parts of the step (data wait,
launch-bound, ...), the one that would gain most first, and none gains more than the others left of
its parts. A general rule comes after the special ones: a wait for the device is a special reason
for gaps between launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from gpulab.core.findings import Finding
from gpulab.core.statuses import Status
from gpulab.features.findings import computing, program_lines, waiting
from gpulab.features.findings.advice import Advice, NotJudged
from gpulab.features.findings.rule import Fix, Holds, Missing, Rule
from gpulab.features.findings.step import Step
from gpulab.report.feature import Draft, Feature
from gpulab.report.report import RunReport, VariantReport

RULES: Sequence[Rule] = (*waiting.RULES, *computing.RULES, *program_lines.RULES)
_MOST = 0.99
_LEFT = 0.05
"""A rule that the others leave less than this of the step for says nothing new."""
_OF_ITS_OWN = 0.5
"""A general rule needs so much of what it found for itself."""


def advice_of(report: RunReport, variant: VariantReport) -> tuple[list[Advice], list[NotJudged]]:
    """What the rules find in a variant, and the rules that lack a measurement."""
    if variant.status not in (Status.OK, Status.PENDING) or variant.time_s is None:
        return [], []
    step = Step(report, variant)
    holds: list[tuple[Rule, Holds]] = []
    missing = []
    for rule in RULES:
        judged = rule.judge(step)
        if isinstance(judged, Holds):
            holds.append((rule, judged))
        elif isinstance(judged, Missing):
            missing.append(
                NotJudged(code=rule.name, missing=judged.measurement, flags=judged.flags)
            )
    return [_advice(variant.name, *entry) for entry in _in_order(step, holds)], missing


def _in_order(step: Step, holds: Sequence[tuple[Rule, Holds]]) -> list[tuple[Rule, Holds]]:
    """The largest gain first; of those that nothing is left for, none."""
    nothing = [entry for entry in holds if not entry[1].high]
    gains = [entry for entry in holds if entry[1].high and not entry[0].last]
    last = [entry for entry in holds if entry[0].last]
    special = sorted((entry for entry in gains if not entry[0].general), key=_by_gain)
    general = [entry for entry in gains if entry[0].general]
    left = dict(step.variant.goodput.partition) if step.variant.goodput else {}
    selected: list[tuple[Rule, Holds]] = []
    for rule, each in (*special, *general):
        available = sum(left.get(part, 0.0) for part in each.takes) if left else each.high
        high = min(each.high, available, _MOST)
        least = _OF_ITS_OWN * each.high if rule.general and selected else _LEFT
        if high < least and selected:
            continue
        # what is known of a part may be of another recording than what is left of it
        high = high if selected else min(each.high, _MOST)
        _take(left, each.takes, high)
        selected.append((rule, replace(each, low=min(each.low, high), high=high)))
    largest = max((each.high for rule, each in selected if not rule.general), default=0.0)
    selected.sort(key=lambda entry: _place(entry[0], entry[1], largest))
    # nothing to gain is said only where no rule found anything
    if nothing and not selected:
        return nothing
    explained = sum(each.high for _, each in selected)
    return selected + [entry for entry in last if explained < _OF_ITS_OWN * entry[1].high]


def _by_gain(entry: tuple[Rule, Holds]) -> float:
    return -entry[1].high


def _place(rule: Rule, holds: Holds, largest: float) -> tuple[bool, float]:
    """By gain, but a general rule after the special ones unless it gains much more than they: these
    say more exactly what to change.
    """
    follows = rule.general and holds.high * _OF_ITS_OWN <= largest
    return follows, -holds.high


def _take(left: dict[str, float], parts: Sequence[str], share: float) -> None:
    """Subtract a share from these parts, in their order."""
    for part in parts:
        taken = min(share, left.get(part, 0.0))
        if part in left:
            left[part] -= taken
        share -= taken


def _advice(variant: str, rule: Rule, holds: Holds) -> Advice:
    fix = holds.fix or Fix(rule.change, rule.code, rule.lesson)
    return Advice(
        finding=Finding(code=rule.name, variant=variant, values=dict(holds.values)),
        gain_low=holds.low,
        gain_high=holds.high,
        speedup_low=1 / (1 - holds.low),
        speedup_high=1 / (1 - holds.high),
        evidence=list(holds.evidence),
        change=fix.change,
        code=list(fix.code),
        lesson=fix.lesson,
    )


def _of_run(draft: Draft, report: RunReport) -> RunReport:
    if draft.under_way:
        return report
    variants = []
    for variant in report.variants:
        advice, not_judged = advice_of(report, variant)
        variants.append(structs.replace(variant, advice=advice, not_judged=not_judged))
    return structs.replace(report, variants=variants)


FINDINGS = Feature("findings", of_run=_of_run)
