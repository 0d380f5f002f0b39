"""Variants that each ran alone, beside those that were interleaved: what a user gets who runs one
of them.
"""

from __future__ import annotations

from gpulab.core.units import plural_of, rate, times, with_interval
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.stats.comparison import Comparison, Sustained


def headline(report: RunReport) -> tuple[str, str]:
    """(the comparisons with their sustained speedup as the headline, why); both empty without."""
    parts = []
    reasons = []
    for comparison, sustained in _sustained(report):
        if sustained.headline_reason:
            interleaved = f"interleaved {times(comparison.speedup)}"
            parts.append(f"{comparison.variant} sustained {_speedup(sustained)}, {interleaved}")
            reasons.append(sentence(sustained.headline_reason))
    if not parts:
        return "", ""
    why = "; ".join(dict.fromkeys(reasons))
    return "; ".join(parts), f"production runs one variant: {why}"


def alone(report: RunReport) -> str:
    """One line: sustained speedups that are not the headline, and the rate of steps with several
    items.
    """
    parts = []
    for comparison, sustained in _sustained(report):
        facts = []
        if not sustained.headline_reason:
            facts.append(_speedup(sustained))
        items = report.variant(comparison.variant).items
        if sustained.items_per_s and items not in (None, 1.0):
            facts.append(f"{rate(sustained.items_per_s)} {plural_of(report.item)}/s")
        if facts:
            parts.append(f"{comparison.variant} {', '.join(facts)}")
    if not parts:
        return ""
    return f"alone, back to back: {'; '.join(parts)}"


def _sustained(report: RunReport) -> list[tuple[Comparison, Sustained]]:
    """The first comparison of every variant that has one."""
    return [
        (comparison, comparison.sustained)
        for comparison in report.comparisons
        if comparison.sustained is not None and report.comparison(comparison.variant) is comparison
    ]


def _speedup(sustained: Sustained) -> str:
    """With its interval, where it has one."""
    return with_interval(sustained.speedup)
