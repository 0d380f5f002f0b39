"""Findings of building and timing variants."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding


@finding("{reason}")
def skipped_by_variant(*, reason: str) -> None: ...
@finding("{smaller} did not fit into memory, and this one needs more")
def smaller_did_not_fit(*, smaller: str) -> None: ...
@finding("{settings:list}: set while building; it belongs in Work(context=...)")
def set_while_building(*, settings: list[str]) -> None: ...
@finding("{settings:list}: set while stepping; it belongs in Work(context=...)")
def set_while_stepping(*, settings: list[str]) -> None: ...
@finding("{settings:list}: not restored by the context of its Work")
def left_by_context(*, settings: list[str]) -> None: ...
@finding(
    "it does {items:g} items a step and the baseline {baseline:g}: do equal work, or compare per "
    "item with Scenario(per='item') and name the part to check as output="
)
def items_differ(*, items: float, baseline: float) -> None: ...
@finding("an async function: each step runs it to its end in an event loop", rank=Rank.EXPLAINING)
def async_function() -> None: ...
@finding("a generator: each step takes all that it yields", rank=Rank.EXPLAINING)
def generator_function() -> None: ...
@finding("the variants do not fit into memory together: each ran alone")
def ran_one_at_a_time() -> None: ...
@finding(
    "its device time includes gaps between launches: it waits for the device, or launches more "
    "than a queue holds",
    rank=Rank.EXPLAINING,
)
def gaps_in_device_time() -> None: ...
