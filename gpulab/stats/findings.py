"""Findings of a comparison: why its verdict is none, or not a clearer one."""

from __future__ import annotations

from gpulab.core.findings import finding
from gpulab.core.statuses import IntervalUnit
from gpulab.core.units import plural


@finding("{dropped} of {pairs} pairs dropped")
def pairs_dropped(*, dropped: int, pairs: int) -> None: ...
@finding()
def too_few_values(*, count: int, unit: str, needed: int) -> str:
    noun = "process" if unit == IntervalUnit.PROCESSES else "build"
    return f"{plural(count, noun)}: a 99 % interval needs {needed}"


@finding(
    "the interval is narrow, and overlaps the equivalence margin: an effect of at most "
    "{largest:.1%}"
)
def overlaps_equivalence_margin(*, largest: float) -> None: ...
@finding(
    "below the minimum detectable effect of {mde:.1%}: give it more --time, or a quieter machine"
)
def below_minimum_detectable_effect(*, mde: float) -> None: ...
@finding(
    "its interval is from {low:times} to {high:times}, over 3x apart: give it more --time, or a "
    "quieter machine"
)
def interval_too_wide(*, low: float, high: float) -> None: ...
