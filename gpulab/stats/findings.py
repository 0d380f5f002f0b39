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
