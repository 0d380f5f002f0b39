"""Findings of a comparison: why its verdict is none, or not a clearer one."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding()
def pairs_dropped(*, dropped: int, pairs: int) -> str:
    return f"{dropped} of {pairs} pairs dropped"


@finding()
def too_few_values(*, count: int, unit: str, needed: int) -> str:
    return f"{count} {unit}: a 99 % interval needs {needed}"


@finding()
def overlaps_equivalence_margin(*, largest: float) -> str:
    return (
        "the interval is narrow, and overlaps the equivalence margin: an effect of at most "
        f"{largest:.1%}"
    )


@finding()
def below_minimum_detectable_effect(*, mde: float) -> str:
    return (
        f"below the minimum detectable effect of {mde:.1%}: give it more --time, or a quieter "
        "machine"
    )
