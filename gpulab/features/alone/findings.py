"""Findings of variants that run alone: without the others before or between."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding(
    "variants influence each other: {interleaved:times} among the others, {alone:times} where no "
    "other was built"
)
def variants_influence(*, interleaved: float | None, alone: float | None) -> None: ...
@finding("fails where no other variant was built: {message}")
def fails_alone(*, message: str) -> None: ...
@finding(
    "variants influence each other: a step of the baseline takes {later_s:seconds}, and "
    "{before_s:seconds} before the others were built"
)
def baseline_slowed(*, later_s: float, before_s: float, ratio: float) -> None: ...
@finding("power-limited alone; they share the limit when interleaved")
def power_cap_alone() -> None: ...
@finding("its step time alone differs from the interleaved one")
def differs_alone() -> None: ...
