"""Findings of variants that run alone: without the others before or between."""

from __future__ import annotations

from gpulab.core.findings import finding, plain
from gpulab.core.units import seconds, times


@finding()
def variants_influence(*, interleaved: float | None, alone: float | None) -> str:
    return (
        f"variants influence each other: {times(interleaved)} among the others, {times(alone)} "
        "where no other was built"
    )


@finding()
def fails_alone(*, message: str) -> str:
    return f"fails where no other variant was built: {message}"


@finding()
def baseline_slowed(*, later_s: float, before_s: float, ratio: float) -> str:
    return (
        f"variants influence each other: a step of the baseline takes {seconds(later_s)}, and "
        f"{seconds(before_s)} before the others were built"
    )


power_cap_alone = plain(
    "power_cap_alone", "power-limited alone; they share the limit when interleaved"
)
differs_alone = plain("differs_alone", "its step time alone differs from the interleaved one")
