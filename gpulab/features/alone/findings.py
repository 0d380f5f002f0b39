"""Findings of variants that run alone: without the others before or between."""

from __future__ import annotations

from gpulab.core.findings import finding
from gpulab.core.statuses import CheckKind


@finding(
    "cross-variant interference: a step takes {rounds_s:seconds} interleaved and {alone_s:seconds} "
    "isolated (speedup {interleaved:times} and {alone:times})"
)
def variants_influence(
    *, interleaved: float | None, alone: float | None, rounds_s: float, alone_s: float
) -> None: ...
@finding(
    "{interleaved:times} interleaved, {alone:times} isolated: the machine, or something that they "
    "share, is not the same for both",
    check=CheckKind.ALONE,
    short="another speedup alone",
)
def speedup_differs_alone(*, interleaved: float | None, alone: float | None) -> None: ...
@finding("fails where no other variant was built: {message}")
def fails_alone(*, message: str) -> None: ...
@finding(
    "building {by} slows the baseline: a step takes {later_s:seconds}, and {before_s:seconds} "
    "before the others were built"
)
def baseline_slowed(*, by: str, later_s: float, before_s: float, ratio: float) -> None: ...
@finding(
    "a step of the baseline takes {later_s:seconds}, and {before_s:seconds} before the others were "
    "built: no build explains it alone",
    check=CheckKind.ALONE,
    short="baseline changed",
)
def baseline_changed(*, later_s: float, before_s: float, ratio: float) -> None: ...
@finding("power-limited alone; they share the limit when interleaved")
def power_cap_alone() -> None: ...
@finding("its step time alone differs from the interleaved one")
def differs_alone() -> None: ...
