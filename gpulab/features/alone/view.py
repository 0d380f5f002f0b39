"""Variants that each ran alone, beside those that were interleaved: what a user gets who runs one
of them.
"""

from __future__ import annotations

from gpulab.core.units import rate, span, times
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.stats.comparison import Comparison, Sustained


def headline(report: RunReport) -> tuple[str, str]:
    """(the comparisons whose sustained speedup stands first, why it does); both empty where it does
    of none.
    """
    parts, reasons = [], []
    for comparison, sustained in _sustained(report):
        if sustained.headline_reason:
            interleaved = f"interleaved {times(comparison.speedup)}"
            parts.append(f"{comparison.variant} sustained {_speedup(sustained)}, {interleaved}")
            reasons.append(sentence(sustained.headline_reason))
    why = "; ".join(dict.fromkeys(reasons))
    return "; ".join(parts), f"production runs one variant: {why}" if why else ""


def alone(report: RunReport) -> str:
    """One line: speedups alone where they do not stand first, and items per second where a step has
    several.
    """
    parts = []
    for comparison, sustained in _sustained(report):
        several = report.variant(comparison.variant).items not in (None, 1.0)
        per_second = sustained.items_per_s if several else None
        facts = [] if sustained.headline_reason else [_speedup(sustained)]
        facts += [f"{rate(per_second)} items/s"] if per_second else []
        parts += [f"{comparison.variant} {', '.join(facts)}"] if facts else []
    return f"sustained, each alone: {'; '.join(parts)}" if parts else ""


def _sustained(report: RunReport) -> list[tuple[Comparison, Sustained]]:
    """The first comparison of every variant that has one."""
    return [
        (comparison, comparison.sustained)
        for comparison in report.comparisons
        if comparison.sustained is not None and report.comparison(comparison.variant) is comparison
    ]


def _speedup(sustained: Sustained) -> str:
    """With its interval, where it has one."""
    ends = span(sustained.low, sustained.high)
    return f"{times(sustained.speedup)}{f' ({ends})' if ends else ''}"
