"""What pairs of windows of a running program say of a part or a fix."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from statistics import median

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.features.trials.events import TriedChange
from gpulab.features.trials.result import BY_SLOPE, LESS, PartReport, TrialsReport, TriedReport
from gpulab.report.report import fields_of
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
    share = median(pair.part_s / pair.plain_s for pair in pairs) or None
    gain = slope.moved(lambda value: LESS * share * value) if share else None
    return replace(part, share=share, slope=slope, gain=gain, gain_from=BY_SLOPE)


def _fix(change: TriedChange) -> TriedReport:
    pairs = [pair for pair in change.pairs if pair.in_effect]
    fix = TriedReport(
        **fields_of(change, "name", "was", "now", "alters", "why_not"),
        pairs=len(change.pairs),
        in_effect=len(pairs),
    )
    if not pairs:
        return fix
    ratios = log_ratios([pair.changed_s for pair in pairs], [pair.plain_s for pair in pairs])
    return replace(fix, speedup=_estimate(ratios).moved(lambda ratio: exp(-ratio)))


def _estimate(values: Sequence[float]) -> Estimate:
    interval = median_interval(values)
    return interval.estimate if interval else Estimate(value=median(values), n=len(values))
