"""Findings of building and timing variants."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding, plain


@finding()
def skipped_by_variant(*, reason: str) -> str:
    return reason


@finding()
def smaller_did_not_fit(*, smaller: str) -> str:
    return f"{smaller} did not fit into memory, and this one needs more"


@finding()
def set_while_building(*, settings: list[str]) -> str:
    return f"{', '.join(settings)}: set while building; it belongs in Work(context=...)"


@finding()
def set_while_stepping(*, settings: list[str]) -> str:
    return f"{', '.join(settings)}: set while stepping; it belongs in Work(context=...)"


@finding()
def left_by_context(*, settings: list[str]) -> str:
    return f"{', '.join(settings)}: not restored by the context of its Work"


@finding()
def items_differ(*, items: float, baseline: float) -> str:
    return (
        f"it does {items:g} items a step and the baseline {baseline:g}: do equal work, or compare "
        "per item with Scenario(per='item') and name the part to check as output="
    )


ran_one_at_a_time = plain(
    "ran_one_at_a_time", "the variants do not fit into memory together: each ran alone"
)
gaps_in_device_time = plain(
    "gaps_in_device_time",
    "its device time includes gaps between launches: it waits for the device, or launches more "
    "than a queue holds",
    rank=Rank.EXPLAINING,
)
