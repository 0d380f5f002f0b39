"""What pairs of windows of a running program say of a part or a fix."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from statistics import median

from gpulab.core.estimate import Estimate
from gpulab.features.trials.events import TriedChange
from gpulab.features.trials.result import LESS, PartReport, TrialsReport, TriedReport
from gpulab.stats.statistics import log_ratios, median_interval


def trials_report(changes: Sequence[TriedChange]) -> TrialsReport:
    """Return the parts and the fixes, those that gain most first."""
    parts = [_part(change) for change in changes if change.kind == "part"]
    fixes = [_fix(change) for change in changes if change.kind == "fix"]
    return TrialsReport(
        less=LESS,
        parts=sorted(parts, key=lambda part: -(part.gain.value if part.gain else 0.0)),
        fixes=sorted(fixes, key=lambda fix: -(fix.speedup.value if fix.speedup else 0.0)),
    )


def _part(change: TriedChange) -> PartReport:
    part = PartReport(kind="part", name=change.name, lane="", why_not=change.why_not)
    pairs = [pair for pair in change.pairs if pair.delay_s > 0]
    if not pairs:
        return part
    slope = _estimate([(pair.changed_s - pair.plain_s) / pair.delay_s for pair in pairs])
    share = median(pair.part_s / pair.plain_s for pair in pairs)
    gain = slope.moved(lambda value: LESS * share * value) if share else None
    return PartReport(
        kind="part",
        name=change.name,
        lane="",
        share=share or None,
        slope=slope,
        gain=gain,
        gain_from="its slope",
    )


def _fix(change: TriedChange) -> TriedReport:
    speedup = None
    pairs = [pair for pair in change.pairs if pair.in_effect]
    if pairs:
        before = [pair.plain_s for pair in pairs]
        ratios = log_ratios([pair.changed_s for pair in pairs], before)
        speedup = _estimate(ratios).moved(lambda ratio: exp(-ratio))
    return TriedReport(
        name=change.name,
        speedup=speedup,
        pairs=len(change.pairs),
        in_effect=len(pairs),
        was=change.was,
        now=change.now,
        alters=change.alters,
        why_not=change.why_not,
    )


def _estimate(values: Sequence[float]) -> Estimate:
    interval = median_interval(values)
    return interval.estimate if interval else Estimate(value=median(values), n=len(values))
